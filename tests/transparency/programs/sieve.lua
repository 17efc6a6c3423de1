local n, count, composite = 200000, 0, {}
for i = 2, n do
  if not composite[i] then count = count + 1 for j = i * i, n, i do composite[j] = true end end
end
print("primes", count)
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end)
print(co(), co(), co(), collectgarbage("count") > 0)
local p = io.popen("echo child; exit 3")
print(p:read("a"), p:close())
print(pcall(error, "message"), string.rep("ab", 3, "-"))

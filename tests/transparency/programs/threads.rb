# Threads, a queue, a mutex, a fork and a pipe.
sum = 0
mutex = Mutex.new
8.times.map { |i| Thread.new { 1000.times { mutex.synchronize { sum += i } } } }.each(&:join)
puts "sum #{sum}"
queue = Queue.new
consumer = Thread.new { n = 0; while (v = queue.pop) != :end; n += v; end; n }
100.times { |i| queue << i }
queue << :end
puts consumer.value
reader, writer = IO.pipe
pid = fork { reader.close; writer.puts 'from child'; exit! 6 }
writer.close
puts reader.read
Process.wait pid
puts $?.exitstatus
puts `echo backquote`
Signal.trap('USR1') { puts 'usr1' }
Process.kill('USR1', Process.pid)
sleep 0.1

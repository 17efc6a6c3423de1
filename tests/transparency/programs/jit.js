// Hot loops that the compiler optimises, a deoptimisation, garbage, typed arrays, regular expressions, wasm.
function primes(n) { const s = new Uint8Array(n + 1); let c = 0;
  for (let i = 2; i <= n; i++) { if (!s[i]) { c++; for (let j = i * 2; j <= n; j += i) s[j] = 1; } } return c; }
console.log('primes', primes(2000000));
function add(a, b) { return a + b; }
let x = 0; for (let i = 0; i < 1e6; i++) x = add(x, i) % 1000003;
console.log(x, add('a', 1), add(0.5, 0.25));
let kept = []; for (let i = 0; i < 300000; i++) { const o = { i, s: 'x' + i }; if (i % 1000 === 0) kept.push(o); }
console.log(kept.length, kept[299].s);
console.log('the quick brown fox'.replace(/(\w+) (\w+)/g, '$2 $1'));
const wasm = new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,109,117,108,0,0,10,9,1,7,0,32,0,32,1,108,11]);
console.log('wasm', new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports.mul(6, 7));
try { (function f() { f(); })(); } catch (e) { console.log(e instanceof RangeError); }

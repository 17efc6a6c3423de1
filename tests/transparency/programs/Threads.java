import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

/** Threads, an executor, parallel streams, a null check by fault, a stack overflow, garbage. */
public class Threads {
    static int depth;

    static void recurse() { depth++; recurse(); }

    public static void main(String[] args) throws Exception {
        AtomicLong sum = new AtomicLong();
        Thread[] threads = new Thread[8];
        for (int i = 0; i < threads.length; i++) {
            final int n = i;
            threads[i] = new Thread(() -> { for (int k = 0; k < 10000; k++) sum.addAndGet(n); });
            threads[i].start();
        }
        for (Thread t : threads) t.join();
        System.out.println("sum " + sum.get());
        ExecutorService pool = Executors.newFixedThreadPool(3);
        long total = 0;
        for (Future<Integer> f : pool.invokeAll(java.util.Collections.<Callable<Integer>>nCopies(20, () -> 21))) total += f.get();
        pool.shutdown();
        System.out.println("pool " + total);
        System.out.println(java.util.stream.LongStream.range(0, 1000000).parallel().filter(x -> x % 7 == 0).sum());
        try { String s = args.length > 99 ? "" : null; System.out.println(s.length()); }
        catch (NullPointerException e) { System.out.println("null"); }
        try { recurse(); } catch (StackOverflowError e) { System.out.println("overflow " + (depth > 500)); }
        byte[][] garbage = new byte[50][];
        for (int i = 0; i < 2000; i++) garbage[i % 50] = new byte[100000];
        System.out.println(garbage[7].length);
    }
}

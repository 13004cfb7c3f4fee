/**
 * Counts words in threads of its own, so that the virtual machine compiles, collects and ends
 * threads.
 */
public class Words {
    public static void main(String[] arguments) throws InterruptedException {
        long[] sums = new long[20];
        Thread[] threads = new Thread[sums.length];
        for (int number = 0; number < threads.length; number++) {
            final int own = number;
            threads[number] = new Thread(() -> {
                var words = new java.util.TreeMap<String, Integer>();
                for (int n = 0; n < 20000; n++) words.merge("word " + n * (own + 1) % 977, 1, Integer::sum);
                sums[own] = words.size();
            });
            threads[number].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println(java.util.Arrays.stream(sums).sum());
        System.exit(5);
    }
}

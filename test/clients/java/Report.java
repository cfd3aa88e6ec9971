import java.io.File;
import java.io.IOException;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.function.IntConsumer;

/** The result protocol of ../README.md. */
final class Report {
    private static final long RECONNECT_MILLIS = 20_000;
    static final long WORK_MILLIS = 60_000; // for what others do, on a busy machine

    interface Step {
        void run() throws Exception;
    }

    /** A reply was not the one expected. */
    static final class Unexpected extends RuntimeException {
        private static final long serialVersionUID = 1;

        Unexpected(String message) {
            super(message);
        }
    }

    /** Returns a library's version, which its file's name ends in. */
    static String version(Class<?> library) {
        String jar = new File(library.getProtectionDomain().getCodeSource().getLocation().getPath()).getName();
        return jar.replaceAll("^[a-z0-9_-]+-|\\.jar$", "");
    }

    static void step(String name, Step step) {
        try {
            step.run();
            System.out.println("ok " + name);
        } catch (Exception e) {
            System.out.println(("FAIL " + name + ": " + e).replace('\n', ' '));
        }
    }

    static void expect(String what, Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new Unexpected(what + " gives " + got + ", want " + want);
        }
    }

    static void expectTtl(long got, long most) {
        if (got <= 0 || got > most) {
            throw new Unexpected("TTL is " + got);
        }
    }

    /** Has the driver restart the proxy, and returns when it has done so. */
    static void restarted() throws IOException {
        System.out.println("restart");
        if (System.in.read() < 0) {
            throw new IOException("the driver is gone");
        }
    }

    /** Returns the address of a node, as host and port. */
    static String[] node() throws IOException {
        System.out.println("node");
        return line().trim().split(":");
    }

    private static String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = System.in.read(); c != '\n'; c = System.in.read()) {
            if (c < 0) {
                throw new IOException("the driver is gone");
            }
            line.append((char) c);
        }
        return line.toString();
    }

    /** Has the driver replace the cluster's nodes, and repeats work(i) until it has done so. Returns how often. */
    static int whileReplaced(IntConsumer work) throws Exception {
        return whileDriver("replace", work);
    }

    /** When a node was killed, in milliseconds since 1970. */
    static double killed;

    /** Has the driver kill a node, start another one and restart the proxies. Returns how often it has called work. */
    static int whileCrashed(IntConsumer work) throws Exception {
        return whileDriver("crash", work);
    }

    private static int whileDriver(String word, IntConsumer work) throws Exception {
        System.out.println(word);
        System.in.read(); // it begins
        int i = 0;
        do {
            work.accept(i++);
            Thread.sleep(10);
        } while (System.in.available() == 0);
        String line = line();
        killed = line.isEmpty() ? 0 : Double.parseDouble(line.toString()) * 1_000;
        return i;
    }

    /**
     * Whether a moment is one of the last of the node that was killed: what it has acknowledged then may be lost with
     * it.
     */
    static boolean inLastMoments(long millis) {
        return millis > killed - 1_000 && millis < killed + 250;
    }

    /** Runs what may fail during a crash. Returns whether it has succeeded. */
    static boolean succeeds(Step step) {
        try {
            step.run();
            return true;
        } catch (Exception e) {
            System.err.println(e);
            return false;
        }
    }

    /** Tells what a crash has done. */
    static void count(String words) {
        System.out.println("count " + words);
    }

    /** Repeats work in a thread of its own. An error fails the program. */
    static void loop(Runnable work) {
        Thread thread = new Thread(() -> {
            try {
                while (true) {
                    work.run();
                }
            } catch (RuntimeException e) {
                System.out.println(("FAIL in a thread: " + e).replace('\n', ' '));
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    /** Repeats an attempt until it succeeds: until the proxy is back it may fail. */
    static <T> T untilItWorks(Callable<T> attempt) throws Exception {
        return untilItWorks(attempt, RECONNECT_MILLIS);
    }

    static <T> T untilItWorks(Callable<T> attempt, long millis) throws Exception {
        for (long deadline = System.currentTimeMillis() + millis;; Thread.sleep(20)) {
            try {
                return attempt.call();
            } catch (RuntimeException e) {
                if (System.currentTimeMillis() > deadline) {
                    throw e;
                }
            }
        }
    }
}

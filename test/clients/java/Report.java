import java.io.File;
import java.io.IOException;
import java.util.Objects;
import java.util.concurrent.Callable;

/** The result protocol of ../README.md. */
final class Report {
    private static final long RECONNECT_MILLIS = 20_000;

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

    /** Prints a library's version, which its file's name ends in. */
    static void version(Class<?> library) throws Exception {
        File jar = new File(library.getProtectionDomain().getCodeSource().getLocation().toURI());
        System.out.println("version " + jar.getName().replaceAll("^[a-z-]+-|\\.jar$", ""));
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

    /** Repeats an attempt until it succeeds: until the proxy is back it may fail. */
    static <T> T untilItWorks(Callable<T> attempt) throws Exception {
        for (long deadline = System.currentTimeMillis() + RECONNECT_MILLIS;; Thread.sleep(20)) {
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

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * What every queue is put through, in one process: at full speed to warm up, at full speed measured, then at a steady
 * rate. At full speed at most `window` records are in the queue or with consumers. At the steady rate a record counts
 * from when it is due. At the end every record must have been accepted exactly once.
 *
 * Standard output: "begin load" and "end load" around what is measured at full speed, then the figures in JSON.
 */
final class QueueLoad {
    private static final long SECOND_NS = 1_000_000_000L;
    private static final long PAUSE_NS = 50_000L;

    private final Map<String, String> options = new HashMap<>();
    final Ledger ledger = new Ledger();
    private long sent;

    QueueLoad(String[] arguments) {
        for (String one : arguments) {
            String[] pair = one.split("=", 2);
            options.put(pair[0], pair[1]);
        }
    }

    String text(String name) {
        return options.get(name);
    }

    int number(String name) {
        return Integer.parseInt(options.get(name));
    }

    private double seconds(String name) {
        return Double.parseDouble(options.get(name));
    }

    /** The process ends with this, whatever threads there are. */
    void run(Queue queue) {
        try {
            measure(queue);
            System.exit(0);
        } catch (Throwable fault) {
            fault.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private void measure(Queue queue) throws Exception {
        queue.begin();
        atFullSpeed(queue, seconds("warm_s"));
        say("begin load");
        long began = System.nanoTime();
        long before = ledger.accepted.get();
        atFullSpeed(queue, seconds("load_s"));
        long accepted = ledger.accepted.get() - before;
        double loadS = (System.nanoTime() - began) / (double) SECOND_NS;
        say("end load");
        drain();
        steadily(queue, seconds("steady_warm_s"));
        Ledger.Timed timed = steadily(queue, seconds("steady_s"));
        drain();
        queue.end();
        tell(accepted, loadS, timed);
    }

    private void atFullSpeed(Queue queue, double seconds) throws Exception {
        long end = System.nanoTime() + (long) (seconds * SECOND_NS);
        int window = number("window");
        while (System.nanoTime() < end) {
            if (sent - ledger.accepted.get() >= window) {
                ledger.check();
                LockSupport.parkNanos(PAUSE_NS);
            } else {
                send(queue, System.nanoTime(), true);
            }
        }
    }

    private Ledger.Timed steadily(Queue queue, double seconds) throws Exception {
        int rate = number("rate");
        int count = (int) (rate * seconds);
        Ledger.Timed timed = ledger.time(sent, count);
        long began = System.nanoTime();
        for (int at = 0; at < count; at++) {
            long dueNs = began + at * SECOND_NS / rate;
            for (long left = dueNs - System.nanoTime(); left > 0; left = dueNs - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            ledger.check();
            send(queue, dueNs, false);
        }
        return timed;
    }

    private void send(Queue queue, long dueNs, boolean hurried) throws Exception {
        byte[] record = new byte[number("value_bytes")];
        ByteBuffer.wrap(record).putLong(sent).putLong(dueNs);
        if (++sent >= Ledger.RECORDS_MAX) {
            throw new IllegalStateException("more records than the ledger has room for");
        }
        queue.send(record, hurried);
    }

    private void drain() {
        long end = System.nanoTime() + number("drain_s") * SECOND_NS;
        while (ledger.accepted.get() < sent) {
            ledger.check();
            if (System.nanoTime() > end) {
                throw new IllegalStateException((sent - ledger.accepted.get()) + " records were never accepted");
            }
            LockSupport.parkNanos(20 * PAUSE_NS);
        }
    }

    private void tell(long accepted, double loadS, Ledger.Timed timed) {
        ledger.check();
        Arrays.sort(timed.delivered);
        Arrays.sort(timed.acknowledged);
        say(String.format(
                Locale.ROOT,
                "{\"sent\": %d, \"accepted\": %d, \"accepted_twice\": %d, \"redelivered\": %d, \"load_records\": %d,"
                        + " \"records_per_s\": %.1f, \"delivered_p50_ms\": %.3f, \"delivered_p99_ms\": %.3f,"
                        + " \"acknowledged_p50_ms\": %.3f, \"acknowledged_p99_ms\": %.3f}",
                sent, ledger.accepted.get(), ledger.twice.get(), ledger.redelivered.get(), accepted,
                accepted / loadS, ms(timed.delivered, 0.5), ms(timed.delivered, 0.99),
                ms(timed.acknowledged, 0.5), ms(timed.acknowledged, 0.99)));
    }

    private static double ms(long[] sorted, double share) {
        return sorted[Math.min(sorted.length - 1, (int) (sorted.length * share))] / 1e6;
    }

    private static void say(String text) {
        System.out.println(text);
        System.out.flush();
    }
}

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;

/** Every record by its number: whether it was accepted, whether twice, and, of those that are timed, when. */
final class Ledger {
    static final int RECORDS_MAX = 1 << 26;

    final AtomicLong accepted = new AtomicLong();
    final AtomicLong twice = new AtomicLong();
    final AtomicLong redelivered = new AtomicLong();
    private final AtomicLongArray seen = new AtomicLongArray(RECORDS_MAX / 64);
    private final AtomicReference<Throwable> fault = new AtomicReference<>();
    private volatile Timed timed = new Timed(0, 0);

    /** From due until in a consumer's hands, and until acknowledged, of the records from `first` on. */
    static final class Timed {
        final long first;
        final long[] delivered;
        final long[] acknowledged;

        Timed(long first, int count) {
            this.first = first;
            delivered = new long[count];
            acknowledged = new long[count];
        }
    }

    Timed time(long first, int count) {
        timed = new Timed(first, count);
        return timed;
    }

    void accept(long id, long dueNs, long deliveredNs, long acknowledgedNs) {
        long bit = 1L << (id & 63);
        long before = seen.getAndAccumulate((int) (id >>> 6), bit, (old, one) -> old | one);
        if ((before & bit) != 0) {
            twice.incrementAndGet();
            return;
        }
        Timed now = timed;
        if (id >= now.first && id - now.first < now.delivered.length) {
            now.delivered[(int) (id - now.first)] = deliveredNs - dueNs;
            now.acknowledged[(int) (id - now.first)] = acknowledgedNs - dueNs;
        }
        accepted.incrementAndGet();
    }

    void fail(Throwable problem) {
        fault.compareAndSet(null, problem);
    }

    /** Whoever waits learns that a consumer or the producer has failed. */
    void check() {
        if (fault.get() != null) {
            throw new IllegalStateException("the queue failed", fault.get());
        }
    }
}

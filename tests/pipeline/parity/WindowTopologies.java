import java.time.Duration;
import java.util.Map;
import java.util.function.Consumer;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.WindowStore;

/** Tumbling, hopping, sliding and session windows. A name ends with size, (hop,) and grace in milliseconds. */
final class WindowTopologies {
    static void addTo(final Map<String, Consumer<StreamsBuilder>> topologies) {
        addTumbling(topologies);
        addHopping(topologies);
        addSliding(topologies);
        addSessions(topologies);
        addSuppressed(topologies);
    }

    private static void addTumbling(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("tumbling-count-10-0", builder -> out(tumbling(builder, 10, 0).count()));
        topologies.put("tumbling-count-10-5", builder -> out(tumbling(builder, 10, 5).count()));
        topologies.put("tumbling-reduce-10-5", builder -> out(
            tumbling(builder, 10, 5).reduce(WindowTopologies::joined)));
        topologies.put("tumbling-aggregate-10-5", builder -> out(aggregated(tumbling(builder, 10, 5))));
        topologies.put("tumbling-closed-10-5", builder -> out(
            tumbling(builder, 10, 5).emitStrategy(EmitStrategy.onWindowClose()).count(kept())));
        topologies.put("tumbling-closed-unkept-10-5", builder -> out(
            tumbling(builder, 10, 5).emitStrategy(EmitStrategy.onWindowClose()).count()));
        topologies.put("unlimited-count", builder -> out(
            grouped(builder).windowedBy(UnlimitedWindows.of()).count()));
    }

    private static void addHopping(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("hopping-count-10-5-0", builder -> out(hopping(builder, 10, 5, 0).count()));
        topologies.put("hopping-reduce-10-4-6", builder -> out(
            hopping(builder, 10, 4, 6).reduce(WindowTopologies::joined)));
        topologies.put("hopping-closed-10-5-5", builder -> out(
            hopping(builder, 10, 5, 5).emitStrategy(EmitStrategy.onWindowClose()).count(kept())));
    }

    private static void addSliding(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("sliding-count-10-0", builder -> out(sliding(builder, 10, 0).count()));
        topologies.put("sliding-count-10-50", builder -> out(sliding(builder, 10, 50).count()));
        topologies.put("sliding-reduce-10-50", builder -> out(
            sliding(builder, 10, 50).reduce(WindowTopologies::joined)));
        topologies.put("sliding-aggregate-10-50", builder -> out(aggregated(sliding(builder, 10, 50))));
        topologies.put("sliding-closed-10-5", builder -> out(
            sliding(builder, 10, 5).emitStrategy(EmitStrategy.onWindowClose()).count(kept())));
    }

    private static void addSessions(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("session-count-10-0", builder -> out(sessions(builder, 10, 0).count()));
        topologies.put("session-count-10-20", builder -> out(sessions(builder, 10, 20).count()));
        topologies.put("session-reduce-10-20", builder -> out(
            sessions(builder, 10, 20).reduce(WindowTopologies::joined)));
        topologies.put("session-aggregate-10-20", builder -> out(sessions(builder, 10, 20).aggregate(
            () -> "0", (key, value, sum) -> sum + "+" + value, (key, one, other) -> "(" + one + ")(" + other + ")")));
        topologies.put("session-closed-10-5", builder -> out(
            sessions(builder, 10, 5).emitStrategy(EmitStrategy.onWindowClose()).count()));
    }

    private static void addSuppressed(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("tumbling-suppressed-10-5", builder -> out(tumbling(builder, 10, 5).count().suppress(closes())));
        topologies.put("hopping-suppressed-10-5-0", builder -> out(
            hopping(builder, 10, 5, 0).count().suppress(closes())));
        topologies.put("session-suppressed-10-5", builder -> out(sessions(builder, 10, 5).count().suppress(closes())));
        topologies.put("sliding-suppressed-10-5", builder -> out(sliding(builder, 10, 5).count().suppress(closes())));
        topologies.put("tumbling-limited-10-0-20", builder -> out(tumbling(builder, 10, 0).count().suppress(
            Suppressed.untilTimeLimit(Duration.ofMillis(20), Suppressed.BufferConfig.unbounded()))));
        topologies.put("count-limited-20", builder -> grouped(builder).count().suppress(
                Suppressed.untilTimeLimit(Duration.ofMillis(20), Suppressed.BufferConfig.unbounded()))
            .toStream().to("out", Parity.json()));
    }

    /** Longer than any scenario: a window that the store has let go is never emitted. */
    private static Materialized<String, Long, WindowStore<Bytes, byte[]>> kept() {
        return Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(Serdes.String(), Serdes.Long())
            .withRetention(Duration.ofDays(1));
    }

    private static Suppressed<Windowed<?>> closes() {
        return Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
    }

    /** Named serdes, for suppress does not know the default ones. */
    private static KGroupedStream<String, String> grouped(final StreamsBuilder builder) {
        return builder.<String, String>stream("in").groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
    }

    static TimeWindows timeWindows(final long size, final long grace) {
        return TimeWindows.ofSizeAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace));
    }

    static SessionWindows sessionWindows(final long gap, final long grace) {
        return SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(gap), Duration.ofMillis(grace));
    }

    static SlidingWindows slidingWindows(final long difference, final long grace) {
        return SlidingWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(difference), Duration.ofMillis(grace));
    }

    private static TimeWindowedKStream<String, String> tumbling(
            final StreamsBuilder builder, final long size, final long grace) {
        return grouped(builder).windowedBy(timeWindows(size, grace));
    }

    private static TimeWindowedKStream<String, String> hopping(
            final StreamsBuilder builder, final long size, final long hop, final long grace) {
        return grouped(builder).windowedBy(timeWindows(size, grace).advanceBy(Duration.ofMillis(hop)));
    }

    private static TimeWindowedKStream<String, String> sliding(
            final StreamsBuilder builder, final long difference, final long grace) {
        return grouped(builder).windowedBy(slidingWindows(difference, grace));
    }

    private static SessionWindowedKStream<String, String> sessions(
            final StreamsBuilder builder, final long gap, final long grace) {
        return grouped(builder).windowedBy(sessionWindows(gap, grace));
    }

    private static KTable<Windowed<String>, String> aggregated(final TimeWindowedKStream<String, String> windows) {
        return windows.aggregate(() -> "0", (key, value, sum) -> sum + "+" + value);
    }

    static String joined(final String one, final String other) {
        return one + "," + other;
    }

    static <V> void out(final KTable<Windowed<String>, V> table) {
        table.toStream().to("out", Parity.json());
    }
}

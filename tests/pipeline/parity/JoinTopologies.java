import java.time.Duration;
import java.util.Map;
import java.util.function.Consumer;

import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;

/** Joins. The result is always "left+right", with "-" for a side that is not there. */
final class JoinTopologies {
    static void addTo(final Map<String, Consumer<StreamsBuilder>> topologies) {
        addStreams(topologies);
        addStreamTables(topologies);
        addTables(topologies);
    }

    private static void addStreams(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("stream-stream-inner-10-0", builder -> out(
            stream(builder, "left").join(stream(builder, "right"), JoinTopologies::pair, within(10, 0))));
        topologies.put("stream-stream-inner-10-20", builder -> out(
            stream(builder, "left").join(stream(builder, "right"), JoinTopologies::pair, within(10, 20))));
        topologies.put("stream-stream-inner-before-0-after-10", builder -> out(stream(builder, "left").join(
            stream(builder, "right"), JoinTopologies::pair, within(10, 5).before(Duration.ZERO))));
        topologies.put("stream-stream-left-10-5", builder -> out(
            stream(builder, "left").leftJoin(stream(builder, "right"), JoinTopologies::pair, within(10, 5))));
        topologies.put("stream-stream-left-before-10-after-0", builder -> out(stream(builder, "left").leftJoin(
            stream(builder, "right"), JoinTopologies::pair, within(10, 0).after(Duration.ZERO))));
        topologies.put("stream-stream-outer-10-5", builder -> out(
            stream(builder, "left").outerJoin(stream(builder, "right"), JoinTopologies::pair, within(10, 5))));
        topologies.put("stream-stream-outer-before-0-after-10", builder -> out(stream(builder, "left").outerJoin(
            stream(builder, "right"), JoinTopologies::pair, within(10, 0).before(Duration.ZERO))));
        topologies.put("stream-self-10-5", builder -> {
            final KStream<String, String> both = stream(builder, "left");
            out(both.join(both, JoinTopologies::pair, within(10, 5)));
        });
    }

    private static void addStreamTables(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("stream-table-inner", builder -> out(
            stream(builder, "left").join(table(builder, "right"), JoinTopologies::pair)));
        topologies.put("stream-table-left", builder -> out(
            stream(builder, "left").leftJoin(table(builder, "right"), JoinTopologies::pair)));
        topologies.put("stream-global-inner", builder -> {
            final GlobalKTable<String, String> all = builder.globalTable("right");
            out(stream(builder, "left").join(all, (key, value) -> reference(value), JoinTopologies::pair));
        });
        topologies.put("stream-global-left", builder -> {
            final GlobalKTable<String, String> all = builder.globalTable("right");
            out(stream(builder, "left").leftJoin(all, (key, value) -> reference(value), JoinTopologies::pair));
        });
    }

    private static void addTables(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("table-table-inner", builder -> out(
            table(builder, "left").join(table(builder, "right"), JoinTopologies::pair)));
        topologies.put("table-table-left", builder -> out(
            table(builder, "left").leftJoin(table(builder, "right"), JoinTopologies::pair)));
        topologies.put("table-table-outer", builder -> out(
            table(builder, "left").outerJoin(table(builder, "right"), JoinTopologies::pair)));
        topologies.put("foreign-key-inner", builder -> out(
            table(builder, "left").join(table(builder, "right"), JoinTopologies::reference, JoinTopologies::pair)));
        topologies.put("foreign-key-left", builder -> out(
            table(builder, "left").leftJoin(table(builder, "right"), JoinTopologies::reference, JoinTopologies::pair)));
    }

    private static KStream<String, String> stream(final StreamsBuilder builder, final String topic) {
        return builder.stream(topic);
    }

    private static KTable<String, String> table(final StreamsBuilder builder, final String topic) {
        return builder.table(topic);
    }

    private static JoinWindows within(final long difference, final long grace) {
        return JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(difference), Duration.ofMillis(grace));
    }

    private static String pair(final String left, final String right) {
        return (left == null ? "-" : left) + "+" + (right == null ? "-" : right);
    }

    /** A left value refers to a row of the right by what stands before its colon; without one, to none. */
    private static String reference(final String value) {
        return value == null || value.indexOf(':') < 0 ? null : value.substring(0, value.indexOf(':'));
    }

    private static void out(final KStream<String, String> stream) {
        stream.to("out", Parity.json());
    }

    private static void out(final KTable<String, String> table) {
        out(table.toStream());
    }
}

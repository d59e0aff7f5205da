import java.util.Map;
import java.util.function.Consumer;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;

/** Aggregations without windows, cogroup, and tables made of tables. */
final class TableTopologies {
    static void addTo(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("count", builder -> out(grouped(builder).count()));
        topologies.put("reduce", builder -> out(grouped(builder).reduce(TableTopologies::shortened)));
        topologies.put("aggregate", builder -> out(grouped(builder).aggregate(
            () -> "0", (key, value, sum) -> value.equals("clear") ? null : sum + "+" + value)));
        topologies.put("group-by-count", builder -> out(builder.<String, String>stream("in")
            .groupBy((key, value) -> value == null ? null : value.substring(0, 1)).count()));
        topologies.put("table", builder -> out(builder.<String, String>table("in")));
        topologies.put("to-table", builder -> out(builder.<String, String>stream("in").toTable()));
        topologies.put("table-filter", builder -> out(
            builder.<String, String>table("in").filter((key, value) -> value.startsWith("a"))));
        topologies.put("table-filter-kept", builder -> out(builder.<String, String>table("in").filter(
            (key, value) -> value.startsWith("a"), Materialized.as("kept"))));
        topologies.put("table-map-values", builder -> out(
            builder.<String, String>table("in").mapValues(value -> value == null ? null : value.toUpperCase())));
        addGroupedTables(topologies);
        addCogroups(topologies);
    }

    private static void addGroupedTables(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("table-group-aggregate", builder -> out(groupedTable(builder).aggregate(
            () -> "0", (key, value, sum) -> sum + "+" + value, (key, value, sum) -> sum + "-" + value)));
        topologies.put("table-group-count", builder -> out(groupedTable(builder).count()));
        topologies.put("table-group-reduce", builder -> out(groupedTable(builder).reduce(
            (sum, value) -> add(sum, value, 1), (sum, value) -> add(sum, value, -1))));
    }

    private static void addCogroups(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("cogroup", builder -> out(cogrouped(builder).aggregate(() -> "0")));
        topologies.put("cogroup-tumbling-10-5", builder -> out(
            cogrouped(builder).windowedBy(WindowTopologies.timeWindows(10, 5)).aggregate(() -> "0")));
        topologies.put("cogroup-sliding-10-50", builder -> out(
            cogrouped(builder).windowedBy(WindowTopologies.slidingWindows(10, 50)).aggregate(() -> "0")));
        topologies.put("cogroup-session-10-20", builder -> out(
            cogrouped(builder).windowedBy(WindowTopologies.sessionWindows(10, 20)).aggregate(
                () -> "0", (key, one, other) -> "(" + one + ")(" + other + ")")));
    }

    private static KGroupedStream<String, String> grouped(final StreamsBuilder builder) {
        return builder.<String, String>stream("in").groupByKey();
    }

    /** A value is "group:number"; one without a group has the group null and takes no part. */
    private static KGroupedTable<String, String> groupedTable(final StreamsBuilder builder) {
        return builder.<String, String>table("in").groupBy(
            (key, value) -> KeyValue.pair(group(value), value.substring(value.indexOf(':') + 1)),
            Grouped.with(Serdes.String(), Serdes.String()));
    }

    private static String group(final String value) {
        return value.startsWith(":") ? null : value.substring(0, value.indexOf(':'));
    }

    private static CogroupedKStream<String, String> cogrouped(final StreamsBuilder builder) {
        return builder.<String, String>stream("left").groupByKey()
            .<String>cogroup((key, value, sum) -> sum + "+" + value)
            .cogroup(builder.<String, String>stream("right").groupByKey(), (key, value, sum) -> sum + "-" + value);
    }

    /** "end" as the newer value deletes the key. */
    private static String shortened(final String older, final String newer) {
        return newer.equals("end") ? null : older + "," + newer;
    }

    private static String add(final String sum, final String value, final int sign) {
        return Integer.toString(Integer.parseInt(sum) + sign * Integer.parseInt(value));
    }

    static <K, V> void out(final KTable<K, V> table) {
        table.toStream().to("out", Parity.json());
    }
}

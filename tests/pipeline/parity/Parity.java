import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Windowed;

/**
 * Runs scenarios through Kafka Streams' TopologyTestDriver.
 *
 * Reads a JSON list of scenarios (name, topology, inputs) from the first file and writes to the second a JSON object:
 * by the scenario's name, the list of every record that the topology wrote, in order. "row" is the number of the input
 * row, counted from 1, that brought the record about.
 */
public final class Parity {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final String APPLICATION = "parity";

    public static void main(final String[] arguments) throws IOException {
        final Map<String, Consumer<StreamsBuilder>> topologies = new TreeMap<>();
        StatelessTopologies.addTo(topologies);
        WindowTopologies.addTo(topologies);
        TableTopologies.addTo(topologies);
        JoinTopologies.addTo(topologies);
        final ObjectNode results = JSON.createObjectNode();
        for (final JsonNode scenario : JSON.readTree(Files.readString(Path.of(arguments[0])))) {
            final String name = scenario.get("topology").asText();
            final Consumer<StreamsBuilder> topology = topologies.get(name);
            if (topology == null) {
                throw new IllegalArgumentException("no topology " + name + "; there are " + topologies.keySet());
            }
            results.set(scenario.get("name").asText(), run(topology, scenario.get("inputs")));
        }
        Files.writeString(Path.of(arguments[1]), JSON.writeValueAsString(results));
    }

    private static ArrayNode run(final Consumer<StreamsBuilder> topology, final JsonNode inputs) {
        final StreamsBuilder builder = new StreamsBuilder();
        topology.accept(builder);
        final ArrayNode outputs = JSON.createArrayNode();
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings(), Instant.EPOCH)) {
            final Map<String, TestInputTopic<String, String>> topics = new TreeMap<>();
            int row = 0;
            for (final JsonNode input : inputs) {
                row += 1;
                topics.computeIfAbsent(input.get("topic").asText(), name ->
                        driver.createInputTopic(name, new StringSerializer(), new StringSerializer()))
                    .pipeInput(text(input.get("key")), text(input.get("value")), input.get("timestamp").asLong());
                drain(driver, row, outputs);
            }
        }
        return outputs;
    }

    /** Nothing is cached, and nothing held back by the wall clock: every update is seen at once. */
    private static Properties settings() {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, APPLICATION);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:9092");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("java.io.tmpdir"));
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        return settings;
    }

    /** The driver keeps a queue a topic: between topics, the order is that of their names. */
    private static void drain(final TopologyTestDriver driver, final int row, final ArrayNode outputs) {
        for (final String topic : new TreeSet<>(driver.producedTopicNames())) {
            if (topic.startsWith(APPLICATION + "-")) {
                continue;
            }
            final var queue = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            while (!queue.isEmpty()) {
                final var record = queue.readRecord();
                final ObjectNode output = outputs.addObject();
                output.put("row", row);
                output.put("topic", topic);
                output.set("key", parsed(record.key()));
                output.set("value", parsed(record.value()));
                output.put("timestamp", record.timestamp());
            }
        }
    }

    /** What every topology writes with: strings and longs as JSON, a windowed key as key, start and end. */
    static <K, V> Produced<K, V> json() {
        return Produced.with(Parity.<K>jsonSerde(), Parity.<V>jsonSerde());
    }

    private static <T> Serde<T> jsonSerde() {
        return Serdes.serdeFrom((topic, value) -> written(value), (topic, bytes) -> {
            throw new UnsupportedOperationException("outputs are never read back");
        });
    }

    private static byte[] written(final Object value) {
        if (value == null) {
            return null;
        }
        try {
            return JSON.writeValueAsBytes(value instanceof Windowed<?> windowed ? window(windowed) : value);
        } catch (final IOException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static ObjectNode window(final Windowed<?> windowed) {
        final ObjectNode node = JSON.createObjectNode();
        node.putPOJO("key", windowed.key());
        node.put("start", windowed.window().start());
        node.put("end", windowed.window().end());
        return node;
    }

    private static JsonNode parsed(final byte[] bytes) {
        try {
            return bytes == null ? JSON.nullNode() : JSON.readTree(new String(bytes, StandardCharsets.UTF_8));
        } catch (final IOException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static String text(final JsonNode node) {
        return node.isNull() ? null : node.asText();
    }
}

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** One row in, none or more rows out; and processors with a state of their own. */
final class StatelessTopologies {
    static void addTo(final Map<String, Consumer<StreamsBuilder>> topologies) {
        topologies.put("filter-map", StatelessTopologies::filterMap);
        topologies.put("flat-map", StatelessTopologies::flatMap);
        topologies.put("merge", StatelessTopologies::merge);
        topologies.put("branch", StatelessTopologies::branch);
        topologies.put("repartition", StatelessTopologies::repartition);
        topologies.put("dynamic-topic", StatelessTopologies::dynamicTopic);
        topologies.put("process-store", builder -> process(builder, () -> new Numbered()));
        topologies.put("process-punctuate", builder -> process(builder, () -> new Gathered()));
    }

    private static KStream<String, String> in(final StreamsBuilder builder) {
        return builder.stream("in");
    }

    private static void filterMap(final StreamsBuilder builder) {
        in(builder).filter((key, value) -> value != null)
            .filterNot((key, value) -> value.startsWith("x"))
            .map((key, value) -> KeyValue.pair(value, key))
            .mapValues((key, value) -> value + "!")
            .to("out", Parity.json());
    }

    private static void flatMap(final StreamsBuilder builder) {
        in(builder).flatMap((key, value) -> List.of(value.split(" ")).stream()
                .filter(word -> !word.isEmpty()).map(word -> KeyValue.pair(word, key)).toList())
            .flatMapValues(value -> List.of(value, value + value))
            .to("out", Parity.json());
    }

    private static void merge(final StreamsBuilder builder) {
        builder.<String, String>stream("left").merge(builder.stream("right")).to("out", Parity.json());
    }

    private static void branch(final StreamsBuilder builder) {
        in(builder).split()
            .branch((key, value) -> value != null && value.length() > 3,
                Branched.withConsumer(stream -> stream.to("long", Parity.json())))
            .branch((key, value) -> value != null && value.startsWith("a"),
                Branched.withConsumer(stream -> stream.to("a", Parity.json())))
            .defaultBranch(Branched.withConsumer(stream -> stream.to("rest", Parity.json())));
    }

    private static void repartition(final StreamsBuilder builder) {
        in(builder).selectKey((key, value) -> value == null || value.startsWith("?") ? null : value.substring(0, 1))
            .repartition(Repartitioned.as("by-letter"))
            .to("out", Parity.json());
    }

    private static void dynamicTopic(final StreamsBuilder builder) {
        in(builder).to((key, value, context) -> "out-" + key, Parity.json());
    }

    private static void process(final StreamsBuilder builder, final Processors processors) {
        builder.addStateStore(Stores.keyValueStoreBuilder(
            Stores.inMemoryKeyValueStore("state"), Serdes.String(), Serdes.String()));
        in(builder).process(processors::create, "state").to("out", Parity.json());
    }

    private interface Processors {
        Processor<String, String, String, String> create();
    }

    /** Each row with its number within its key; a null value forgets the key. */
    private static final class Numbered implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> state;

        @Override
        public void init(final ProcessorContext<String, String> context) {
            this.context = context;
            state = context.getStateStore("state");
        }

        @Override
        public void process(final Record<String, String> record) {
            if (record.value() == null) {
                state.delete(record.key());
                return;
            }
            final String before = state.get(record.key());
            final int number = before == null ? 1 : Integer.parseInt(before) + 1;
            state.put(record.key(), Integer.toString(number));
            context.forward(record.withValue(number + " " + record.value()));
        }
    }

    /** Values are gathered by key; every 10 ms of stream time they are all sent on and forgotten. */
    private static final class Gathered implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> state;

        @Override
        public void init(final ProcessorContext<String, String> context) {
            this.context = context;
            state = context.getStateStore("state");
            context.schedule(Duration.ofMillis(10), PunctuationType.STREAM_TIME, this::send);
        }

        @Override
        public void process(final Record<String, String> record) {
            final String before = state.get(record.key());
            state.put(record.key(), before == null ? record.value() : before + record.value());
        }

        private void send(final long now) {
            try (var all = state.all()) {
                all.forEachRemaining(entry -> {
                    context.forward(new Record<>(entry.key, entry.value, now));
                    state.delete(entry.key);
                });
            }
        }
    }
}

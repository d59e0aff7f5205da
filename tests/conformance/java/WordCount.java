import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * WordCount INPUT OUTPUT NAME=VALUE...: counts words by the streams group protocol, through a repartition topic and a
 * store. It says each state it comes to, and which tasks it has when it is told to with a line; another word ends it.
 */
public class WordCount {
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put("group.protocol", "streams");
        config.put("default.key.serde", Serdes.StringSerde.class.getName());
        config.put("default.value.serde", Serdes.StringSerde.class.getName());
        config.put("commit.interval.ms", "200");
        config.put("auto.offset.reset", "earliest");
        for (String one : Arrays.asList(args).subList(2, args.length)) {
            int at = one.indexOf('=');
            config.put(one.substring(0, at), one.substring(at + 1));
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[0], Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .to(args[1], Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.setUncaughtExceptionHandler(fault -> {
            System.out.println("failed: " + fault);
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse
                .SHUTDOWN_CLIENT;
        });
        streams.start();
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine() && in.nextLine().equals("tasks")) {
            StringBuilder said = new StringBuilder("tasks");
            streams.metadataForLocalThreads().forEach(thread -> {
                thread.activeTasks().forEach(task -> said.append(" active:").append(task.taskId()));
                thread.standbyTasks().forEach(task -> said.append(" standby:").append(task.taskId()));
            });
            System.out.println(said);
        }
        streams.close(Duration.ofSeconds(30));
        System.exit(0);
    }
}

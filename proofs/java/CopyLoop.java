import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * CopyLoop BOOTSTRAP GROUP PROTOCOL SOURCE TARGET TRANSACTIONAL_ID: a consume-transform-produce loop as Apache's client
 * wants it written. It ends where its producer is of no more use; whoever started it starts it again.
 */
public class CopyLoop {
    private static final int FENCED = 3;
    private static final Duration CALL_LIMIT = Duration.ofSeconds(10);

    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String target;

    private CopyLoop(String[] args) {
        Properties reading = common(args[0]);
        reading.put("group.id", args[1]);
        reading.put("group.protocol", args[2]);
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("isolation.level", "read_committed");
        reading.put("max.poll.records", "100");
        reading.put("key.deserializer", StringDeserializer.class.getName());
        reading.put("value.deserializer", StringDeserializer.class.getName());
        if (args[2].equals("classic")) {
            reading.put("session.timeout.ms", "6000");
            reading.put("heartbeat.interval.ms", "1000");
        }
        Properties writing = common(args[0]);
        writing.put("transactional.id", args[5]);
        writing.put("transaction.timeout.ms", "8000");
        writing.put("max.block.ms", String.valueOf(CALL_LIMIT.toMillis()));
        writing.put("key.serializer", StringSerializer.class.getName());
        writing.put("value.serializer", StringSerializer.class.getName());
        target = args[4];
        consumer = new KafkaConsumer<>(reading);
        producer = new KafkaProducer<>(writing);
        consumer.subscribe(List.of(args[3]));
    }

    private static Properties common(String bootstrap) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        return config;
    }

    public static void main(String[] args) {
        try {
            CopyLoop loop = new CopyLoop(args);
            loop.producer.initTransactions();
            while (true) {
                loop.step();
            }
        } catch (KafkaException fault) {
            fault.printStackTrace();
            Runtime.getRuntime().halt(FENCED);
        }
    }

    private void step() {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
        if (records.isEmpty()) {
            return;
        }
        try {
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
            for (ConsumerRecord<String, String> one : records) {
                producer.send(new ProducerRecord<>(target, one.partition(), one.key(), "copy of " + one.value()));
                ends.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
            }
            producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
            commit();
        } catch (KafkaException fault) {
            System.err.println("aborted for " + fault);
            producer.abortTransaction(); // refused where the producer is fenced: then the process ends
            goBack();
        }
    }

    private void commit() {
        while (true) {
            try {
                producer.commitTransaction();
                return;
            } catch (TimeoutException late) {
                System.err.println("committed again for " + late);
            }
        }
    }

    /** To what is committed: what was read since is read again. */
    private void goBack() {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment(), CALL_LIMIT);
        for (TopicPartition place : consumer.assignment()) {
            OffsetAndMetadata known = committed.get(place);
            consumer.seek(place, known == null ? 0 : known.offset());
        }
    }
}

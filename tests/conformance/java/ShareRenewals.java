import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * ShareRenewals BOOTSTRAP GROUP TOPIC MILLISECONDS: takes one record, keeps it for longer than its lock by renewing,
 * accepts it, and says what it saw.
 */
public class ShareRenewals {
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("group.id", args[1]);
        config.put("share.acknowledgement.mode", "explicit");
        config.put("key.deserializer", StringDeserializer.class.getName());
        config.put("value.deserializer", StringDeserializer.class.getName());
        long keep = Long.parseLong(args[3]);
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config)) {
            consumer.subscribe(List.of(args[2]));
            ConsumerRecord<String, String> record = null;
            while (record == null) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(500))) {
                    record = one;
                }
            }
            System.out.println("got " + record.value() + " " + record.deliveryCount().orElse((short) -1));
            long end = System.currentTimeMillis() + keep;
            while (System.currentTimeMillis() < end) {
                consumer.acknowledge(record, AcknowledgeType.RENEW);
                check(consumer.commitSync());
                for (ConsumerRecord<String, String> again : consumer.poll(Duration.ofMillis(200))) {
                    record = again;
                }
            }
            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
            check(consumer.commitSync());
            System.out.println("accepted " + record.value());
        }
    }

    private static void check(Map<TopicIdPartition, Optional<KafkaException>> results) {
        for (Optional<KafkaException> one : results.values()) {
            one.ifPresent(fault -> {
                throw fault;
            });
        }
    }
}

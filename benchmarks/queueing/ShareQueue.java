import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ShareMemberDescription;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One partition and a share group, each consumer a thread with a KafkaShareConsumer of its own. A consumer accepts each
 * record by itself and has that committed before it polls again: a record counts as acknowledged when the broker has
 * answered so. Everything else as by default, but for linger.ms=0 at the steady rate.
 */
final class ShareQueue implements Queue {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final int ADMIN_S = 60;

    private final QueueLoad load;
    private final Ledger ledger;
    private final String topic;
    private final String group;
    private final List<Thread> workers = new ArrayList<>();
    private final KafkaProducer<byte[], byte[]> hurried;
    private final KafkaProducer<byte[], byte[]> prompt;
    private volatile boolean done;

    public static void main(String[] arguments) {
        QueueLoad load = new QueueLoad(arguments);
        load.run(new ShareQueue(load));
    }

    private ShareQueue(QueueLoad load) {
        this.load = load;
        ledger = load.ledger;
        topic = load.text("name");
        group = topic + "-workers";
        hurried = producer(Map.of());
        prompt = producer(Map.of("linger.ms", "0"));
    }

    @Override
    public void begin() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", load.text("server")))) {
            NewTopic wanted = new NewTopic(topic, 1, (short) load.number("replicas"));
            admin.createTopics(List.of(wanted)).all().get(ADMIN_S, TimeUnit.SECONDS);
            ConfigEntry reset = new ConfigEntry("share.auto.offset.reset", "earliest");
            Collection<AlterConfigOp> set = List.of(new AlterConfigOp(reset, AlterConfigOp.OpType.SET));
            Map<ConfigResource, Collection<AlterConfigOp>> configs =
                    Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), set);
            admin.incrementalAlterConfigs(configs).all().get(ADMIN_S, TimeUnit.SECONDS);
            for (int at = 0; at < load.number("consumers"); at++) {
                Thread worker = new Thread(this::work, "worker-" + at);
                worker.start();
                workers.add(worker);
            }
            awaitAssignments(admin);
        }
    }

    private void awaitAssignments(Admin admin) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(ADMIN_S);
        while (assigned(admin) < workers.size()) {
            ledger.check();
            if (System.nanoTime() > end) {
                throw new IllegalStateException("not every consumer has the partition after " + ADMIN_S + " s");
            }
            Thread.sleep(100);
        }
    }

    private long assigned(Admin admin) throws Exception {
        try {
            Collection<ShareMemberDescription> members = admin.describeShareGroups(List.of(group))
                    .describedGroups().get(group).get(ADMIN_S, TimeUnit.SECONDS).members();
            return members.stream().filter(one -> !one.assignment().topicPartitions().isEmpty()).count();
        } catch (java.util.concurrent.ExecutionException early) {
            return 0;
        }
    }

    @Override
    public void send(byte[] record, boolean atFullSpeed) {
        (atFullSpeed ? hurried : prompt).send(new ProducerRecord<>(topic, record), (told, fault) -> {
            if (fault != null) {
                ledger.fail(fault);
            }
        });
    }

    private void work() {
        try (KafkaShareConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.subscribe(List.of(topic));
            while (!done) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                if (!records.isEmpty()) {
                    acknowledge(consumer, records);
                }
            }
        } catch (Throwable fault) {
            ledger.fail(fault);
        }
    }

    private void acknowledge(KafkaShareConsumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
        long deliveredNs = System.nanoTime();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
            if (record.deliveryCount().orElse((short) 1) > 1) {
                ledger.redelivered.incrementAndGet();
            }
        }
        for (Optional<KafkaException> fault : consumer.commitSync().values()) {
            fault.ifPresent(problem -> {
                throw problem;
            });
        }
        long acknowledgedNs = System.nanoTime();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            ByteBuffer said = ByteBuffer.wrap(record.value());
            ledger.accept(said.getLong(), said.getLong(), deliveredNs, acknowledgedNs);
        }
    }

    @Override
    public void end() throws Exception {
        done = true;
        for (Thread worker : workers) {
            worker.join();
        }
        hurried.close();
        prompt.close();
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", load.text("server"));
        config.put("acks", "all");
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private KafkaShareConsumer<byte[], byte[]> consumer() {
        Map<String, Object> config = Map.of(
                "bootstrap.servers", load.text("server"),
                "group.id", group,
                "share.acknowledgement.mode", "explicit");
        return new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
}

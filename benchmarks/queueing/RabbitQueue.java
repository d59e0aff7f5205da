import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.MessageProperties;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A durable queue of RabbitMQ, persistent messages, publisher confirms; each consumer has a connection, a channel and a
 * thread, and acknowledges each message by itself (manual ack, not multiple). The protocol has no answer to an
 * acknowledgement: a message counts as acknowledged when that was sent. That all arrived shows at the end, when the
 * consumers are gone and the queue is empty.
 */
final class RabbitQueue implements Queue {
    private static final long CONFIRM_MS = 60_000;

    private final QueueLoad load;
    private final Ledger ledger;
    private final String queue;
    private final List<Connection> consumers = new ArrayList<>();
    private final ExecutorService workers;
    private Connection connection;
    private Channel publisher;

    public static void main(String[] arguments) {
        QueueLoad load = new QueueLoad(arguments);
        load.run(new RabbitQueue(load));
    }

    private RabbitQueue(QueueLoad load) {
        this.load = load;
        ledger = load.ledger;
        queue = load.text("name");
        workers = Executors.newFixedThreadPool(load.number("consumers"));
    }

    @Override
    public void begin() throws Exception {
        String[] place = load.text("server").split(":");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(place[0]);
        factory.setPort(Integer.parseInt(place[1]));
        factory.setAutomaticRecoveryEnabled(false);
        connection = factory.newConnection();
        publisher = connection.createChannel();
        publisher.queueDeclare(queue, true, false, false, Map.of("x-queue-type", load.text("queue_type")));
        publisher.confirmSelect();
        publisher.addConfirmListener(
                (tag, multiple) -> { },
                (tag, multiple) -> ledger.fail(new IllegalStateException("the broker refused a message")));
        for (int at = 0; at < load.number("consumers"); at++) {
            consumers.add(consume(factory));
        }
    }

    private Connection consume(ConnectionFactory factory) throws Exception {
        Connection own = factory.newConnection(workers);
        Channel channel = own.createChannel();
        channel.basicQos(load.number("prefetch"));
        channel.basicConsume(queue, false, (tag, delivery) -> acknowledge(channel, delivery), tag -> { });
        return own;
    }

    private void acknowledge(Channel channel, Delivery delivery) {
        long deliveredNs = System.nanoTime();
        try {
            channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
        } catch (Exception fault) {
            ledger.fail(fault);
            return;
        }
        if (delivery.getEnvelope().isRedeliver()) {
            ledger.redelivered.incrementAndGet();
        }
        ByteBuffer said = ByteBuffer.wrap(delivery.getBody());
        ledger.accept(said.getLong(), said.getLong(), deliveredNs, System.nanoTime());
    }

    @Override
    public void send(byte[] record, boolean hurried) throws Exception {
        publisher.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, record);
    }

    @Override
    public void end() throws Exception {
        publisher.waitForConfirmsOrDie(CONFIRM_MS);
        for (Connection own : consumers) {
            own.close();
        }
        workers.shutdown();
        int left = publisher.queueDeclarePassive(queue).getMessageCount();
        connection.close();
        if (left > 0) {
            throw new IllegalStateException(left + " messages are left in the queue");
        }
    }
}

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Reads lines "Name version hex", decodes each with Apache Kafka's own class of that name, and answers with a line
 * "hex json": the same message written again, and its fields by name. A message it cannot handle gives "! reason".
 */
public final class Oracle {
    private static final List<String> PACKAGES = List.of(
        "org.apache.kafka.common.message",
        "org.apache.kafka.common.metadata",
        "org.apache.kafka.raft.generated",
        "org.apache.kafka.server.log.remote.metadata.storage.generated",
        "org.apache.kafka.coordinator.group.generated",
        "org.apache.kafka.coordinator.transaction.generated",
        "org.apache.kafka.coordinator.share.generated");

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            String answer;
            try {
                answer = answer(words[0], Short.parseShort(words[1]), HexFormat.of().parseHex(words[2]));
            } catch (ReflectiveOperationException | RuntimeException fault) {
                Throwable cause = fault.getCause() == null ? fault : fault.getCause();
                answer = "! " + cause;
            }
            System.out.println(answer);
        }
    }

    private static String answer(String name, short version, byte[] data) throws ReflectiveOperationException {
        Class<?> type = find(name);
        Message message = (Message) type.getDeclaredConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(data);
        message.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            return "! " + buffer.remaining() + " bytes are left";
        }
        ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] again = new byte[written.remaining()];
        written.get(again);
        return HexFormat.of().formatHex(again) + " " + json(type, message, version);
    }

    private static JsonNode json(Class<?> type, Message message, short version) throws ReflectiveOperationException {
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        Method write = converter.getMethod("write", type, short.class);
        return (JsonNode) write.invoke(null, message, version);
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        for (String place : PACKAGES) {
            for (String suffix : List.of("", "Data")) {
                try {
                    return Class.forName(place + "." + name + suffix);
                } catch (ClassNotFoundException absent) {
                    continue;
                }
            }
        }
        throw new ClassNotFoundException(name);
    }
}

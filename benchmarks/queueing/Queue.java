/** A durable queue under load: one producer, many consumers that acknowledge record by record. */
interface Queue {
    /** The queue is there, and every consumer waits at it. */
    void begin() throws Exception;

    /** Returns at once; a record that cannot be stored fails the ledger. `hurried`: as many as possible are sent. */
    void send(byte[] record, boolean hurried) throws Exception;

    /** Consumers and producer end; what was sent is confirmed, and nothing is left in the queue. */
    void end() throws Exception;
}

"""Every bound, with its unit and the reason for its size; the relations between them are asserted at the end."""

from __future__ import annotations

TOPIC_NAME_LENGTH_MAX = 249
"""characters; Kafka's: a directory name of 255 bytes less "-" and a partition number."""

REQUEST_BYTES_MAX = 104_857_600
"""bytes of one frame; `socket.request.max.bytes`."""

REQUEST_BYTES_MAX_BEFORE_AUTHENTICATION = 524_288
"""bytes of one frame on a SASL listener before the client has authenticated."""

RECEIVE_BUFFER_BYTES = 65_536
"""bytes handed to the socket while no frame's length is known."""

ARRIVAL_BYTES_MAX = 262_144
"""bytes of a frame from this machine that may lie in the socket before they are read; who stalls is told apart from who
is slow by what was read."""

FRAME_IN_HEAP_BYTES_MAX = 1_048_576
"""bytes; a larger frame is received into an anonymous mapping, which commits only what arrives."""

IN_FLIGHT_BYTES_MAX = 536_870_912
"""bytes of frames being received or handled, over all connections; above it reading pauses."""

REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX = 64
"""requests of one connection that may wait for an answer before reading from it pauses."""

WRITE_BUFFER_BYTES_MAX = 4_194_304
"""bytes of answers a connection may have unsent before reading from it pauses."""

TAGGED_FIELDS_MAX = 64
"""tagged fields in one structure; a frame with more is refused."""

MESSAGE_ELEMENTS_MAX = 1_000_000
"""array elements in one decoded message, over all its arrays: two bytes on the wire may take a hundred in memory."""

REQUEST_ELEMENTS_MAX = 100_000
"""array elements in one request: each may cost the one loop ten microseconds; ten times the partitions of a broker."""

STRING_BYTES_MAX = 32_767
"""bytes of a string on the wire."""

ERROR_TEXT_LENGTH_MAX = 2_000
"""characters of what an error tells a client; it may quote a name, and a quoted name may be longer than any string."""

UNCOMPRESSED_BATCH_BYTES_MAX = 67_108_864
"""bytes a compressed batch may expand to where it has to be opened."""

COMPRESSION_RATIO_MAX = 16
"""a batch may also expand to this many times `max.message.bytes`, where that is more."""

RECORDS_CHECKED_MAX = 250_000
"""records of a batch that is gone through one by one, at two microseconds each: half a second."""

RECORD_ERRORS_MAX = 100
"""records of one batch that a Produce response names as faulty."""

TELEMETRY_BYTES_MAX = 1_048_576
"""bytes of one client's metrics, before and after decompression."""

TELEMETRY_CLIENTS_MAX = 16_384
"""client instances whose telemetry is remembered; the one that was silent longest makes room."""

DISK_RESERVE_BYTES_MAX = 1_073_741_824
"""bytes kept free on the disk at the most: below its reserve a broker takes no writes from clients."""

DISK_RESERVE_SHARE = 0.05
"""share of a small disk that is kept free instead."""

FETCH_POSITIONS_MAX = 500_000
"""positions that all fetch sessions of one broker keep together, at about half a kilobyte each."""

FETCH_SESSIONS_MAX = 1_000
"""incremental fetch sessions kept by one broker; `max.incremental.fetch.session.cache.slots`."""

SHARE_SESSION_PLACES_MAX = 20_000
"""partitions that one share session may fetch from."""

OPEN_FILES_SHARE = 0.9
"""share of RLIMIT_NOFILE above which no connection is accepted."""

JOB_THREADS = 6
"""threads of one broker for what blocks: syncs, cold reads, the removal of files."""

SYNC_LANES = 4
"""syncs of different logs that run at the same time; more gain nothing on the disks that were measured."""

PRODUCER_BATCHES_KEPT = 5
"""last batches remembered for each idempotent producer of a partition; the protocol's own number."""

SCRAM_ITERATIONS_MIN = 4_096
"""rounds of hashing that a SCRAM exchange must ask for; Kafka's and the RFC's least."""

SCRAM_ITERATIONS_MAX = 262_144
"""rounds that a broker may make us do for each connection: a tenth of a second. Kafka's own most is 16,384."""

MEMBER_METADATA_BYTES_MAX = 1_048_576
"""bytes of subscription a classic group member may send."""

STREAMS_TOPOLOGY_NAMES_MAX = 4_000
"""subtopologies, topics and copartitioned places that the topology of one streams group may name."""

STREAMS_TASKS_MAX = 100_000
"""tasks of one streams group."""

STREAMS_TOPIC_FAULTS_MAX = 1_000
"""internal topics of streams groups of which a broker remembers why they could not be created."""

MEMBER_ID_PREFIX_LENGTH_MAX = 1_000
"""characters of a client's own name that the id of its group member begins with; the whole id must fit a string."""

METADATA_RECORDS_PER_REQUEST_MAX = 10_000
"""metadata records that one request may lead to, and partitions that it may ask for; Kafka's own number."""

CONFIG_VALUE_LENGTH_MAX = 32_767
"""characters of one configuration's value."""

QUORUM_EPOCH_STEP_MAX = 1 << 20
"""by how much another node's word may raise the quorum's epoch at once: no elections lead that far while a node is
away, and an int32 has room for two thousand such words."""

QUORUM_REPLICAS_MAX = 10_000
"""replicas of the metadata log whose progress the leader keeps; beyond it, observers are served but not described."""

ADMIN_CONNECTIONS_MAX = 8
"""connections of the admin port; each may hold an answer of some megabytes."""

ADMIN_HEAD_BYTES_MAX = 8_192
"""bytes of a request's line and headers on the admin port."""

assert FRAME_IN_HEAP_BYTES_MAX >= ARRIVAL_BYTES_MAX >= RECEIVE_BUFFER_BYTES
assert REQUEST_BYTES_MAX < IN_FLIGHT_BYTES_MAX, "the largest request must fit the budget, or it could never be read"
assert REQUEST_ELEMENTS_MAX <= MESSAGE_ELEMENTS_MAX
assert 4 * (ERROR_TEXT_LENGTH_MAX + 3) <= STRING_BYTES_MAX, "an error's text must fit a string of the protocol"
assert 4 * STREAMS_TASKS_MAX < MESSAGE_ELEMENTS_MAX, "what a single member has, with epochs, must be read back"
assert SYNC_LANES < JOB_THREADS, "what is no sync must find a thread while all lanes are at work"
assert REQUEST_BYTES_MAX_BEFORE_AUTHENTICATION <= REQUEST_BYTES_MAX
assert SCRAM_ITERATIONS_MIN <= SCRAM_ITERATIONS_MAX

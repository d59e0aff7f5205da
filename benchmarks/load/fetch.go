package main

import "fmt"

// The Java consumer's defaults.
const (
	fetchPartitionBytes = 1 << 20
	fetchTotalBytes     = 50 << 20
	fetchMaxWaitMs      = 500
)

// position is where one partition is read next.
type position struct {
	partition int
	offset    int64
	moved     bool // since the session last heard of it
}

// fetchSession asks one broker for some partitions of one topic, incrementally as clients do (KIP-227): after the first
// request only what moved is named.
type fetchSession struct {
	conn        *connection
	topic       *topic
	positions   []*position
	byPartition map[int]*position
	id, epoch   int32
	maxWaitMs   int32
	maxBytes    int32 // of a partition
	correlation int32
}

func newFetchSession(address string, of *topic, positions []*position) (*fetchSession, error) {
	conn, err := dial(address)
	if err != nil {
		return nil, err
	}
	s := &fetchSession{
		conn: conn, topic: of, positions: positions, byPartition: map[int]*position{},
		maxWaitMs: fetchMaxWaitMs, maxBytes: fetchPartitionBytes,
	}
	for _, p := range positions {
		p.moved = true
		s.byPartition[p.partition] = p
	}
	return s, nil
}

// poll sends one Fetch and calls visit with each partition's records and high watermark.
func (s *fetchSession) poll(visit func(p *position, records []byte, highWatermark int64) error) error {
	r, err := s.conn.exchange(s.request(), apiFetch)
	if err != nil {
		return err
	}
	r.int32()
	if code := r.int16(); code != 0 {
		return fmt.Errorf("Fetch: error code %d", code)
	}
	s.advance(r.int32())
	for topics := r.count(); topics > 0 && r.err == nil; topics-- {
		r.uuid()
		for n := r.count(); n > 0 && r.err == nil; n-- {
			if err := s.readPartition(r, visit); err != nil {
				return err
			}
		}
		r.tags()
	}
	return r.err
}

// advance keeps the session that the broker gave; a broker that gave none is asked in full each time.
func (s *fetchSession) advance(id int32) {
	s.id = id
	if id == 0 {
		s.epoch = 0
	} else {
		s.epoch++
	}
	for _, p := range s.positions {
		p.moved = id == 0
	}
}

func (s *fetchSession) request() *writer {
	s.correlation++
	w := newRequest(apiFetch, versionFetch, s.correlation)
	w.int32(s.maxWaitMs)
	w.int32(1)
	w.int32(fetchTotalBytes)
	w.int8(0) // read uncommitted
	w.int32(s.id)
	w.int32(s.epoch)
	moved := 0
	for _, p := range s.positions {
		if p.moved {
			moved++
		}
	}
	if moved == 0 {
		w.count(0)
	} else {
		s.writeMoved(w, moved)
	}
	w.count(0) // nothing to forget
	w.text("") // rack
	w.tags()
	return w
}

func (s *fetchSession) writeMoved(w *writer, moved int) {
	w.count(1)
	w.uuid(s.topic.id)
	w.count(moved)
	for _, p := range s.positions {
		if !p.moved {
			continue
		}
		w.int32(int32(p.partition))
		w.int32(-1) // leader epoch
		w.int64(p.offset)
		w.int32(-1) // last fetched epoch
		w.int64(-1) // log start offset
		w.int32(s.maxBytes)
		w.tags()
	}
	w.tags()
}

func (s *fetchSession) readPartition(r *reader, visit func(*position, []byte, int64) error) error {
	index, code, highWatermark := r.int32(), r.int16(), r.int64()
	r.int64()
	r.int64()
	for n := r.count(); n > 0 && r.err == nil; n-- { // aborted transactions
		r.int64()
		r.int64()
		r.tags()
	}
	r.int32()
	records := r.bytes()
	r.tags()
	if code != 0 {
		return fmt.Errorf("Fetch of partition %d: error code %d", index, code)
	}
	p := s.byPartition[int(index)]
	if r.err != nil || p == nil {
		return r.err
	}
	return visit(p, records, highWatermark)
}

func (p *position) moveTo(offset int64) {
	p.offset = offset
	p.moved = true
}

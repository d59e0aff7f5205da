package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"
)

// The null server answers like a broker and stores nothing: what the load measures against it is the client's own
// ceiling. Fetch is answered from one prepared megabyte. Records that came one to a request are echoed instead, the
// latest few of them, so that a latency has a floor too.
type nullServer struct {
	address  *net.TCPAddr
	prepared []byte // whole batches, a little under fetchPartitionBytes
	records  int    // in each of them
	mu       sync.Mutex
	topics   map[string]int // partitions
	end      int64          // of the echoed records
	echoed   [echoSize][]byte
	arrived  chan struct{} // closed and replaced at each echoed record
}

const (
	echoSize          = 4096
	nullBatchRecords  = 2000
	nullValueBytes    = 100
	nullPartitions    = 4
	nullHighWatermark = 1 << 60
)

func serveNull(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s := newNullServer(listener.Addr().(*net.TCPAddr))
	fmt.Printf("ready: %s\n", s.address)
	return s.serve(listener)
}

func newNullServer(address *net.TCPAddr) *nullServer {
	s := &nullServer{address: address, topics: map[string]int{}, arrived: make(chan struct{})}
	batch := buildBatch(nullBatchRecords, nullValueBytes)
	s.records = fetchPartitionBytes / len(batch)
	s.prepared = bytes.Repeat(batch, s.records)
	return s
}

func (s *nullServer) serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.converse(&connection{Conn: conn})
	}
}

// converse answers one connection's requests in order until it ends or says something unexpected.
func (s *nullServer) converse(c *connection) {
	defer c.Close()
	for {
		body, err := c.receive()
		if err != nil {
			return
		}
		r := &reader{buf: body}
		api, version, correlation := r.int16(), r.int16(), r.int32()
		r.take(int(r.int16()))
		w := &writer{buf: make([]byte, 4, 256)}
		w.int32(correlation)
		if api == apiVersions {
			s.answerVersions(w, version)
		} else {
			r.tags()
			w.tags()
			if !s.answer(r, w, api) {
				continue
			}
		}
		if _, err := c.Write(w.finish()); err != nil || r.err != nil {
			return
		}
	}
}

func (s *nullServer) answer(r *reader, w *writer, api int16) bool {
	switch api {
	case apiProduce:
		return s.answerProduce(r, w)
	case apiFetch:
		s.answerFetch(r, w)
	case apiMetadata:
		s.answerMetadata(r, w)
	case apiCreateTopics:
		s.answerCreateTopics(r, w)
	default:
		r.err = fmt.Errorf("API %d", api)
	}
	return true
}

func (s *nullServer) answerVersions(w *writer, version int16) {
	served := [][2]int16{
		{apiProduce, versionProduce}, {apiFetch, versionFetch}, {apiMetadata, versionMetadata},
		{apiVersions, versionVersions}, {apiCreateTopics, versionCreateTopics},
	}
	w.int16(0)
	if version < 3 {
		w.int32(0) // enough for who only asks whether somebody answers
		return
	}
	w.count(len(served))
	for _, each := range served {
		w.int16(each[0])
		w.int16(each[1])
		w.int16(each[1])
		w.tags()
	}
	w.int32(0)
	w.tags()
}

func (s *nullServer) answerProduce(r *reader, w *writer) bool {
	r.text()
	acks := r.int16()
	r.int32()
	r.count()
	id := r.uuid()
	r.count()
	partition := r.int32()
	batch := r.bytes()
	if r.err != nil {
		return false
	}
	offset := int64(0)
	if recordCount(batch) == 1 {
		offset = s.echo(batch)
	}
	w.count(1)
	w.uuid(id)
	w.count(1)
	w.int32(partition)
	w.int16(0)
	w.int64(offset)
	w.int64(-1)
	w.int64(0)
	w.count(0)
	w.null()
	w.tags()
	w.tags()
	w.int32(0)
	w.tags()
	return acks != 0
}

func (s *nullServer) echo(batch []byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &s.echoed[s.end%echoSize]
	*at = append((*at)[:0], batch...)
	binary.BigEndian.PutUint64((*at)[atBaseOffset:], uint64(s.end))
	s.end++
	close(s.arrived)
	s.arrived = make(chan struct{})
	return s.end - 1
}

func (s *nullServer) answerFetch(r *reader, w *writer) {
	wait := r.int32()
	r.take(4 + 4 + 1 + 4 + 4)
	w.int32(0)
	w.int16(0)
	w.int32(0) // no session: every request names its partitions
	if r.count() != 1 {
		w.count(0)
		w.tags()
		return
	}
	w.count(1)
	w.uuid(r.uuid())
	n := r.count()
	w.count(n)
	for ; n > 0 && r.err == nil; n-- {
		partition := r.int32()
		r.int32()
		offset := r.int64()
		r.take(4 + 8 + 4)
		r.tags()
		w.int32(partition)
		w.int16(0)
		w.int64(nullHighWatermark)
		w.int64(nullHighWatermark)
		w.int64(0)
		w.null()
		w.int32(-1)
		s.appendRecords(w, offset, time.Duration(wait)*time.Millisecond)
		w.tags()
	}
	w.tags()
	w.tags()
}

// appendRecords gives what was echoed at that offset, waiting for it, or the prepared batches where nothing was.
func (s *nullServer) appendRecords(w *writer, offset int64, wait time.Duration) {
	s.mu.Lock()
	echoing, end, arrived := s.end > 0, s.end, s.arrived
	s.mu.Unlock()
	if !echoing {
		w.bytes(s.prepared)
		s.number(w.buf[len(w.buf)-len(s.prepared):], offset)
		return
	}
	if offset >= end {
		select {
		case <-arrived:
		case <-time.After(wait):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []byte
	for offset = max(offset, s.end-echoSize); offset < s.end; offset++ {
		found = append(found, s.echoed[offset%echoSize]...)
	}
	w.bytes(found)
}

// number gives the prepared batches the offsets from there on; their checksums leave the offset out.
func (s *nullServer) number(batches []byte, offset int64) {
	size := len(batches) / s.records
	for i := range s.records {
		binary.BigEndian.PutUint64(batches[i*size:], uint64(offset+int64(i*nullBatchRecords)))
	}
}

func (s *nullServer) answerMetadata(r *reader, w *writer) {
	r.count()
	r.uuid()
	name := r.text()
	s.mu.Lock()
	partitions, known := s.topics[name]
	s.mu.Unlock()
	if !known {
		partitions = nullPartitions
	}
	w.int32(0)
	w.count(1)
	w.int32(1)
	w.text(s.address.IP.String())
	w.int32(int32(s.address.Port))
	w.null()
	w.tags()
	w.null()
	w.int32(1)
	w.count(1)
	w.int16(0)
	w.text(name)
	w.uuid([16]byte{15: 1})
	w.bool(false)
	w.count(partitions)
	for i := range partitions {
		w.int16(0)
		w.int32(int32(i))
		w.int32(1)
		w.int32(0)
		for range 2 { // replicas, in-sync replicas
			w.count(1)
			w.int32(1)
		}
		w.count(0)
		w.tags()
	}
	w.int32(-2147483648)
	w.tags()
	w.tags()
}

func (s *nullServer) answerCreateTopics(r *reader, w *writer) {
	r.count()
	name, partitions := r.text(), r.int32()
	s.mu.Lock()
	s.topics[name] = int(partitions)
	s.mu.Unlock()
	w.int32(0)
	w.count(1)
	w.text(name)
	w.uuid([16]byte{15: 1})
	w.int16(0)
	w.null()
	w.int32(partitions)
	w.int16(1)
	w.null()
	w.tags()
	w.tags()
}

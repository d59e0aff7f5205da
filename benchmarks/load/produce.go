package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// produceLoad is a number of producers at full speed: each has one connection and a window of requests under way, as
// a client's max.in.flight.requests.per.connection. A request carries one batch for one partition.
type produceLoad struct {
	connections  int
	window       int
	batchRecords int
	valueBytes   int
	acks         int16
	records      int64
	seconds      float64
}

type produced struct {
	Records     int64   `json:"records"`
	Requests    int64   `json:"requests"`
	Bytes       int64   `json:"value_bytes"`
	Seconds     float64 `json:"seconds"`
	PerSecond   float64 `json:"records_per_s"`
	MBPerSecond float64 `json:"mb_per_s"`
	BatchBytes  int     `json:"batch_bytes"`
}

func (p produceLoad) run(to *topic) (*produced, error) {
	lanes := make([]*lane, p.connections)
	for i := range lanes {
		l, err := newLane(p, to, i)
		if err != nil {
			return nil, err
		}
		defer l.conn.Close()
		lanes[i] = l
	}
	budget := &budget{}
	budget.left.Store(p.records)
	started := time.Now()
	budget.deadline = started.Add(time.Duration(p.seconds * float64(time.Second)))
	errs := make([]error, len(lanes))
	var done sync.WaitGroup
	for i, l := range lanes {
		done.Add(1)
		go func() {
			defer done.Done()
			errs[i] = l.run(budget)
		}()
	}
	done.Wait()
	seconds := time.Since(started).Seconds()
	requests := int64(0)
	for i, l := range lanes {
		if errs[i] != nil {
			return nil, errs[i]
		}
		requests += l.acked
	}
	return p.summary(requests, seconds, len(lanes[0].slots[0].batch)), nil
}

func (p produceLoad) summary(requests int64, seconds float64, batchBytes int) *produced {
	records := requests * int64(p.batchRecords)
	bytes := records * int64(p.valueBytes)
	return &produced{
		Records: records, Requests: requests, Bytes: bytes, Seconds: seconds, BatchBytes: batchBytes,
		PerSecond: float64(records) / seconds, MBPerSecond: float64(bytes) / seconds / 1e6,
	}
}

// budget is what all lanes may still send, in records and in time, whichever ends first.
type budget struct {
	left     atomic.Int64
	deadline time.Time
}

func (b *budget) take(records int) bool {
	return b.left.Add(-int64(records)) >= 0 && time.Now().Before(b.deadline)
}

// slot is a finished request whose time and checksum alone change from one sending to the next.
type slot struct {
	frame []byte
	batch []byte // the part of frame that is the record batch
}

func newSlot(to *topic, partition int, acks int16, batch []byte) slot {
	w := newRequest(apiProduce, versionProduce, 0)
	w.null() // no transaction
	w.int16(acks)
	w.int32(30_000)
	w.count(1)
	w.uuid(to.id)
	w.count(1)
	w.int32(int32(partition))
	w.bytes(batch)
	end := len(w.buf)
	w.tags()
	w.tags()
	w.tags()
	frame := w.finish()
	return slot{frame: frame, batch: frame[end-len(batch) : end]}
}

// lane is one producer: it fills its window, then sends one request for every answer.
type lane struct {
	conn        *connection
	load        produceLoad
	slots       []slot
	correlation int32
	inFlight    int
	acked       int64
}

func newLane(p produceLoad, to *topic, index int) (*lane, error) {
	leader := to.leaders[index%len(to.leaders)]
	conn, err := dial(leader)
	if err != nil {
		return nil, err
	}
	l := &lane{conn: conn, load: p}
	batch := buildBatch(p.batchRecords, p.valueBytes)
	own := ledBy(to, leader)
	for i := range p.window {
		l.slots = append(l.slots, newSlot(to, own[(index+i)%len(own)], p.acks, batch))
	}
	return l, nil
}

func ledBy(to *topic, leader string) (own []int) {
	for partition, address := range to.leaders {
		if address == leader {
			own = append(own, partition)
		}
	}
	return own
}

func (l *lane) run(b *budget) error {
	for b.take(l.load.batchRecords) {
		if err := l.send(); err != nil {
			return err
		}
		if l.load.acks == 0 {
			l.acked++
		} else if l.inFlight++; l.inFlight == l.load.window {
			if err := l.await(); err != nil {
				return err
			}
		}
	}
	for l.inFlight > 0 {
		if err := l.await(); err != nil {
			return err
		}
	}
	if l.load.acks == 0 { // nothing was answered: the server has taken all of it once it answers what came after
		return checkVersions(l.conn)
	}
	return nil
}

func (l *lane) send() error {
	s := l.slots[int(l.correlation)%len(l.slots)]
	binary.BigEndian.PutUint32(s.frame[8:], uint32(l.correlation))
	l.correlation++
	stamp(s.batch, time.Now().UnixMilli())
	_, err := l.conn.Write(s.frame)
	return err
}

func (l *lane) await() error {
	body, err := l.conn.receive()
	if err != nil {
		return err
	}
	expected := l.correlation - int32(l.inFlight)
	l.inFlight--
	l.acked++
	_, err = readProduced(body, expected)
	return err
}

// readProduced checks one answer and returns the offset given to the (last) batch.
func readProduced(body []byte, expected int32) (offset int64, err error) {
	r := &reader{buf: body}
	if got := r.int32(); got != expected {
		return 0, fmt.Errorf("answer %d where %d was due", got, expected)
	}
	r.tags()
	for topics := r.count(); topics > 0 && r.err == nil; topics-- {
		r.uuid()
		for n := r.count(); n > 0 && r.err == nil; n-- {
			index, code := r.int32(), r.int16()
			offset = r.int64()
			r.int64()
			r.int64()
			for errors := r.count(); errors > 0 && r.err == nil; errors-- {
				r.int32()
				r.text()
				r.tags()
			}
			if message := r.text(); code != 0 {
				return 0, fmt.Errorf("Produce to partition %d: error code %d %s", index, code, message)
			}
			r.tags()
		}
		r.tags()
	}
	return offset, r.err
}

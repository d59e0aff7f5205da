package main

import (
	"net"
	"strings"
	"testing"
	"time"
)

// startNull gives the address of a null server that ends with the test.
func startNull(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go newNullServer(listener.Addr().(*net.TCPAddr)).serve(listener)
	return listener.Addr().String()
}

func openNull(t *testing.T, partitions int) *topic {
	t.Helper()
	address := startNull(t)
	c, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := createTopic(c, "load", partitions, 1, "", time.Second); err != nil {
		t.Fatal(err)
	}
	found, err := open(address, "load")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestABatchReadsBackAsItWasBuilt(t *testing.T) {
	two := append(buildBatch(3, 100), buildBatch(1, 1000)...)
	var counts []int
	err := eachBatch(two, func(batch []byte) error {
		counts = append(counts, recordCount(batch))
		return checkCRC(batch)
	})
	if err != nil || len(counts) != 2 || counts[0] != 3 || counts[1] != 1 {
		t.Fatalf("counts %v, error %v", counts, err)
	}
}

func TestABatchThatIsCutAtTheEndIsLeftOut(t *testing.T) {
	two := append(buildBatch(3, 100), buildBatch(1, 1000)...)
	visited := 0
	err := eachBatch(two[:len(two)-1], func([]byte) error { visited++; return nil })
	if err != nil || visited != 1 {
		t.Fatalf("visited %d, error %v", visited, err)
	}
}

func TestADamagedBatchFailsItsChecksum(t *testing.T) {
	batch := buildBatch(3, 100)
	batch[len(batch)-10] ^= 1
	if checkCRC(batch) == nil {
		t.Fatal("a flipped bit was not noticed")
	}
}

func TestEveryRecordOfTheBudgetIsAcked(t *testing.T) {
	load := produceLoad{connections: 3, window: 5, batchRecords: 10, valueBytes: 100, acks: 1, records: 1000, seconds: 10}
	out, err := load.run(openNull(t, 4))
	if err != nil || out.Records != 1000 || out.Requests != 100 {
		t.Fatalf("%+v, error %v", out, err)
	}
}

func TestWithoutAcksTheLoadWaitsForTheServerToHaveTakenIt(t *testing.T) {
	load := produceLoad{connections: 2, window: 5, batchRecords: 10, valueBytes: 100, acks: 0, records: 500, seconds: 10}
	out, err := load.run(openNull(t, 2))
	if err != nil || out.Records != 500 {
		t.Fatalf("%+v, error %v", out, err)
	}
}

func TestConsumersReadFollowingOffsets(t *testing.T) {
	load := consumeLoad{connections: 2, records: 100_000, seconds: 10, verify: true}
	out, err := load.run(openNull(t, 4))
	if err != nil || out.Records < 100_000 {
		t.Fatalf("%+v, error %v", out, err)
	}
}

func TestLatenciesCountEveryRecordOnce(t *testing.T) {
	load := latencyLoad{perSecond: 500, seconds: 0.5, valueBytes: 100, acks: 1}
	out, err := load.run(openNull(t, 1))
	if err != nil || out.Sent != 250 || out.Received != 250 || out.P50 <= 0 || out.P50 > out.Max {
		t.Fatalf("%+v, error %v", out, err)
	}
}

func TestAnErrorCodeInAnAnswerIsAFailure(t *testing.T) {
	w := &writer{}
	w.int32(7)
	w.tags()
	w.count(1)
	w.uuid([16]byte{})
	w.count(1)
	w.int32(3)
	w.int16(6)
	w.int64(-1)
	w.int64(-1)
	w.int64(-1)
	w.count(0)
	w.text("not the leader")
	_, err := readProduced(w.buf, 7)
	if err == nil || !strings.Contains(err.Error(), "partition 3: error code 6 not the leader") {
		t.Fatalf("error %v", err)
	}
}

func TestAMessageThatEndsTooEarlyIsAnError(t *testing.T) {
	if _, err := readProduced([]byte{0, 0, 0, 7, 0, 2, 1}, 7); err != errShort {
		t.Fatalf("error %v", err)
	}
}

func TestQuantilesAreInMilliseconds(t *testing.T) {
	times := make([]time.Duration, 1000)
	for i := range times {
		times[i] = time.Duration(1000-i) * time.Millisecond
	}
	if got := quantile(times, 0.99); got != 991 {
		t.Fatalf("p99 is %v", got)
	}
}

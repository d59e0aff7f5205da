package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Where the fields of a v2 record batch are. The checksum covers everything from the attributes on.
const (
	atBaseOffset      = 0
	atBatchLength     = 8
	atMagic           = 16
	atCRC             = 17
	atAttributes      = 21
	atLastOffsetDelta = 23
	atBaseTimestamp   = 27
	atMaxTimestamp    = 35
	atRecordCount     = 57
	batchHeaderBytes  = 61
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// buildBatch makes an uncompressed batch of equal-sized values without keys, as a producer without idempotence sends it.
func buildBatch(records, valueBytes int) []byte {
	batch := make([]byte, batchHeaderBytes, batchHeaderBytes+records*(valueBytes+16))
	for i := range records {
		batch = appendRecord(batch, i, valueBytes)
	}
	put := binary.BigEndian
	put.PutUint32(batch[atBatchLength:], uint32(len(batch)-12))
	put.PutUint32(batch[12:], 0xffffffff) // partition leader epoch
	batch[atMagic] = 2
	put.PutUint32(batch[atLastOffsetDelta:], uint32(records-1))
	for at := 43; at < 57; at++ { // no producer id, epoch, sequence
		batch[at] = 0xff
	}
	put.PutUint32(batch[atRecordCount:], uint32(records))
	stamp(batch, 0)
	return batch
}

func appendRecord(batch []byte, index, valueBytes int) []byte {
	var body [32]byte
	head := append(body[:0], 0)                         // attributes
	head = binary.AppendVarint(head, 0)                 // timestamp delta
	head = binary.AppendVarint(head, int64(index))      // offset delta
	head = binary.AppendVarint(head, -1)                // no key
	head = binary.AppendVarint(head, int64(valueBytes)) // value
	size := len(head) + valueBytes + 1                  // and no headers
	batch = binary.AppendVarint(batch, int64(size))
	batch = append(batch, head...)
	for i := range valueBytes {
		batch = append(batch, byte('a'+(index*7+i*3)%26))
	}
	return append(batch, 0)
}

// valueOffset is where the first record's value starts in a batch of one such record.
func valueOffset(valueBytes int) int {
	one := buildBatch(1, valueBytes)
	return len(one) - 1 - valueBytes
}

// stamp sets the batch's time and its checksum, as a producer does for every batch it sends.
func stamp(batch []byte, nowMs int64) {
	binary.BigEndian.PutUint64(batch[atBaseTimestamp:], uint64(nowMs))
	binary.BigEndian.PutUint64(batch[atMaxTimestamp:], uint64(nowMs))
	binary.BigEndian.PutUint32(batch[atCRC:], crc32.Checksum(batch[atAttributes:], castagnoli))
}

// eachBatch calls visit for every whole batch; a cut one at the end, which Fetch may return, is left out.
func eachBatch(data []byte, visit func(batch []byte) error) error {
	for len(data) >= batchHeaderBytes {
		size := 12 + int(binary.BigEndian.Uint32(data[atBatchLength:]))
		if size < batchHeaderBytes || data[atMagic] != 2 {
			return fmt.Errorf("not a v2 batch: length %d, magic %d", size, data[atMagic])
		}
		if size > len(data) {
			return nil
		}
		if err := visit(data[:size]); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}

func baseOffset(batch []byte) int64 { return int64(binary.BigEndian.Uint64(batch[atBaseOffset:])) }
func recordCount(batch []byte) int  { return int(binary.BigEndian.Uint32(batch[atRecordCount:])) }
func nextOffset(batch []byte) int64 {
	return baseOffset(batch) + int64(binary.BigEndian.Uint32(batch[atLastOffsetDelta:])) + 1
}

func checkCRC(batch []byte) error {
	if crc32.Checksum(batch[atAttributes:], castagnoli) != binary.BigEndian.Uint32(batch[atCRC:]) {
		return fmt.Errorf("the batch at offset %d has a wrong checksum", baseOffset(batch))
	}
	return nil
}

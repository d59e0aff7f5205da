package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The versions that Apache Kafka 4.3 and Penstock both serve and that current clients choose. All are flexible.
const (
	apiProduce      = 0
	apiFetch        = 1
	apiMetadata     = 3
	apiVersions     = 18
	apiCreateTopics = 19

	versionProduce      = 13
	versionFetch        = 17
	versionMetadata     = 12
	versionVersions     = 3
	versionCreateTopics = 7
)

const (
	clientID         = "penstock-load"
	maxResponseBytes = 128 << 20
)

var errShort = errors.New("the message ends too early")

// writer builds one frame; finish fills in its length.
type writer struct{ buf []byte }

func newRequest(api, version int16, correlation int32) *writer {
	w := &writer{buf: make([]byte, 4, 256)}
	w.int16(api)
	w.int16(version)
	w.int32(correlation)
	w.int16(int16(len(clientID)))
	w.buf = append(w.buf, clientID...)
	w.tags()
	return w
}

func (w *writer) int8(v int8)       { w.buf = append(w.buf, byte(v)) }
func (w *writer) int16(v int16)     { w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(v)) }
func (w *writer) int32(v int32)     { w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(v)) }
func (w *writer) int64(v int64)     { w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(v)) }
func (w *writer) uvarint(v uint64)  { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *writer) count(n int)       { w.uvarint(uint64(n) + 1) }
func (w *writer) null()             { w.uvarint(0) }
func (w *writer) tags()             { w.uvarint(0) }
func (w *writer) uuid(id [16]byte)  { w.buf = append(w.buf, id[:]...) }
func (w *writer) text(s string)     { w.count(len(s)); w.buf = append(w.buf, s...) }
func (w *writer) bytes(data []byte) { w.count(len(data)); w.buf = append(w.buf, data...) }

func (w *writer) bool(v bool) {
	if v {
		w.int8(1)
	} else {
		w.int8(0)
	}
}

func (w *writer) finish() []byte {
	binary.BigEndian.PutUint32(w.buf, uint32(len(w.buf)-4))
	return w.buf
}

// reader walks a body; after the first error everything it returns is zero, and err says why.
type reader struct {
	buf []byte
	at  int
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.buf)-r.at {
		if r.err == nil {
			r.err = errShort
		}
		return nil
	}
	r.at += n
	return r.buf[r.at-n : r.at]
}

func (r *reader) int8() int8 {
	if b := r.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *reader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.buf[r.at:])
	if n <= 0 {
		r.err = errShort
		return 0
	}
	r.at += n
	return v
}

// count reads a compact length; a null one is -1. It never exceeds the bytes that are left.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.buf)-r.at)+1 {
		r.err = errShort
		return 0
	}
	return int(n) - 1
}

func (r *reader) uuid() (id [16]byte) {
	copy(id[:], r.take(16))
	return id
}

func (r *reader) bytes() []byte {
	if n := r.count(); n > 0 {
		return r.take(n)
	}
	return nil
}

func (r *reader) text() string { return string(r.bytes()) }

func (r *reader) tags() {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		r.uvarint()
		r.take(int(r.uvarint()))
	}
}

// connection sends frames and reads frames; who matches them is the caller's business.
type connection struct {
	net.Conn
	size    [4]byte
	payload []byte
}

func dial(address string) (*connection, error) {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: c}, nil
}

// receive returns the next frame without its length. The bytes stay valid until the next call.
func (c *connection) receive() ([]byte, error) {
	if _, err := io.ReadFull(c.Conn, c.size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(c.size[:]))
	if n < 4 || n > maxResponseBytes {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	if n > cap(c.payload) {
		c.payload = make([]byte, n+n/4)
	}
	c.payload = c.payload[:n]
	_, err := io.ReadFull(c.Conn, c.payload)
	return c.payload, err
}

// exchange sends one request and returns its response's body. ApiVersions answers with the old header, without tags.
func (c *connection) exchange(w *writer, api int16) (*reader, error) {
	if _, err := c.Write(w.finish()); err != nil {
		return nil, err
	}
	body, err := c.receive()
	if err != nil {
		return nil, err
	}
	r := &reader{buf: body}
	r.int32()
	if api != apiVersions {
		r.tags()
	}
	return r, nil
}

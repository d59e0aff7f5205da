package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// topic is what the load needs to know of one: its id, and for each partition the address of its leader.
type topic struct {
	name    string
	id      [16]byte
	leaders []string
}

// checkVersions refuses a server that does not serve the versions this program speaks.
func checkVersions(c *connection) error {
	w := newRequest(apiVersions, versionVersions, 1)
	w.text(clientID)
	w.text("1")
	w.tags()
	r, err := c.exchange(w, apiVersions)
	if err != nil {
		return err
	}
	if code := r.int16(); code != 0 {
		return fmt.Errorf("ApiVersions v%d: error code %d", versionVersions, code)
	}
	served := map[int16][2]int16{}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		api, low, high := r.int16(), r.int16(), r.int16()
		served[api] = [2]int16{low, high}
		r.tags()
	}
	needed := [][2]int16{
		{apiProduce, versionProduce}, {apiFetch, versionFetch}, {apiMetadata, versionMetadata},
		{apiCreateTopics, versionCreateTopics},
	}
	for _, need := range needed {
		if span, ok := served[need[0]]; !ok || need[1] < span[0] || need[1] > span[1] {
			return fmt.Errorf("the server does not serve API %d in version %d (served: %v)", need[0], need[1], span)
		}
	}
	return r.err
}

// createTopic makes a topic; one that exists already is an error. Configs are written as name=value, separated by commas.
func createTopic(c *connection, name string, partitions, replicas int, configs string, timeout time.Duration) error {
	w := newRequest(apiCreateTopics, versionCreateTopics, 2)
	w.count(1)
	w.text(name)
	w.int32(int32(partitions))
	w.int16(int16(replicas))
	w.count(0) // assignments
	pairs := strings.FieldsFunc(configs, func(r rune) bool { return r == ',' })
	w.count(len(pairs))
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		w.text(key)
		w.text(value)
		w.tags()
	}
	w.tags()
	w.int32(int32(timeout.Milliseconds()))
	w.bool(false)
	w.tags()
	r, err := c.exchange(w, apiCreateTopics)
	if err != nil {
		return err
	}
	r.int32()
	r.count()
	r.text()
	r.uuid()
	code, message := r.int16(), r.text()
	if r.err == nil && code != 0 {
		return fmt.Errorf("CreateTopics %s: error code %d %s", name, code, message)
	}
	return r.err
}

// describe asks for one topic. Partitions without a leader have an empty address.
func describe(c *connection, name string) (*topic, error) {
	w := newRequest(apiMetadata, versionMetadata, 3)
	w.count(1)
	w.uuid([16]byte{})
	w.text(name)
	w.tags()
	w.bool(false)
	w.bool(false)
	w.tags()
	r, err := c.exchange(w, apiMetadata)
	if err != nil {
		return nil, err
	}
	r.int32()
	brokers := readBrokers(r)
	r.text()
	r.int32()
	if n := r.count(); n != 1 {
		return nil, fmt.Errorf("Metadata: %d topics instead of one", n)
	}
	if code := r.int16(); code != 0 {
		return nil, fmt.Errorf("Metadata %s: error code %d", name, code)
	}
	found := &topic{name: r.text(), id: r.uuid()}
	r.int8()
	n := r.count()
	found.leaders = make([]string, max(n, 0))
	for ; n > 0 && r.err == nil; n-- {
		readPartition(r, found, brokers)
	}
	return found, r.err
}

func readBrokers(r *reader) map[int32]string {
	brokers := map[int32]string{}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		id, host, port := r.int32(), r.text(), r.int32()
		brokers[id] = net.JoinHostPort(host, strconv.Itoa(int(port)))
		r.text()
		r.tags()
	}
	return brokers
}

func readPartition(r *reader, into *topic, brokers map[int32]string) {
	code, index, leader := r.int16(), r.int32(), r.int32()
	if code == 0 && int(index) < len(into.leaders) {
		into.leaders[index] = brokers[leader]
	}
	r.int32()
	for range 3 { // replicas, in-sync replicas, offline replicas
		r.take(4 * max(r.count(), 0))
	}
	r.tags()
}

// led waits until every partition of the topic has a leader that serves it: metadata may know a leader before the leader
// itself does.
func led(c *connection, name string, timeout time.Duration) (*topic, error) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		found, err := describe(c, name)
		if err == nil && len(found.leaders) > 0 && !contains(found.leaders, "") {
			if err = served(found); err == nil {
				return found, nil
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s has no leaders after %v: %v", name, timeout, err)
		}
	}
}

// served fetches next to nothing from every partition.
func served(t *topic) error {
	for i, leader := range t.leaders {
		if contains(t.leaders[:i], leader) {
			continue
		}
		var positions []*position
		for _, partition := range ledBy(t, leader) {
			positions = append(positions, &position{partition: partition})
		}
		session, err := newFetchSession(leader, t, positions)
		if err != nil {
			return err
		}
		session.maxWaitMs, session.maxBytes = 0, 1
		err = session.poll(func(*position, []byte, int64) error { return nil })
		session.conn.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func contains(list []string, wanted string) bool {
	for _, each := range list {
		if each == wanted {
			return true
		}
	}
	return false
}

// open connects, checks the versions and finds the topic with all its leaders.
func open(address, name string) (*topic, error) {
	c, err := dial(address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := checkVersions(c); err != nil {
		return nil, err
	}
	return led(c, name, 30*time.Second)
}

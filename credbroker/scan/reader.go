package scan

import (
	"cmp"
	"slices"
)

// A node is a place of the answer that may lie on a spelling of a secret: with
// the text before i the secret may have been spelled up to byte j, and with the
// text from i on it goes on there. In base64 a byte may begin in the middle of
// the letter at i; r of its bits are then the byte's before.
type node struct {
	i, j int32
	pat  uint16
	read reading
	r    uint8
	// The best beginning of a spelling that comes through here: its place and
	// the byte of the secret that it begins with.
	from, with int32
}

// An edge is one more byte (or character) of the secret, spelled between two
// nodes. Its spelling ends at end; a line break may lie between that and the
// node it leads to.
type edge struct {
	from, to int32
	at, end  int32 // at is the place of the node it comes from
}

// A find is one that was read, start and end being places of the answer.
type find struct {
	start, end int
	pat        uint16
	read       reading
}

// A reader scans one piece of an answer at a time. What it needs it keeps, so
// that a scan allocates nothing once it is warm.
type reader struct {
	set    *Set
	p      []byte // the piece
	odd    bool   // an odd number of backslashes ends before it
	nodes  []node
	slots  []int32 // a hash table of nodes, by number and 1
	edges  []edge
	marks  []bool
	finds  []find
	units  [10][]unit // by depth of the look ahead
	room   []unit
	blocks []blockLeads
	odds   []int32
	breaks [4][]int32 // line breaks that digits may go on across, by parts of p
	walked int        // the end of the digits that were looked at
	place  int        // what gives cause to explore
	first  int        // the first place that did
}

// scan finds what is in p from `from` on, in order and without overlap. What
// stands before from is read too where a find reaches there. Words before `words`
// need no look.
func (r *reader) scan(p []byte, from, words int, odd bool) []find {
	r.p, r.odd = p, odd
	r.reset()
	r.detect(from, words)
	if len(r.finds) == 0 {
		return nil
	}
	return r.settle()
}

func (r *reader) reset() {
	if len(r.nodes) > 0 {
		clear(r.slots)
	}
	r.nodes, r.finds = r.nodes[:0], r.finds[:0]
	r.blocks = r.blocks[:0]
	r.first = len(r.p)
}

// node is the number of the node with these coordinates, and whether it was
// there already.
func (r *reader) node(pat uint16, read reading, bits uint8, i, j int) (int32, bool) {
	if 2*len(r.nodes) >= len(r.slots) {
		r.grow()
	}
	mask := uint64(len(r.slots) - 1)
	h := (uint64(i)<<32 ^ uint64(j)<<16 ^ uint64(pat)<<6 ^ uint64(read)<<3 ^ uint64(bits)) * 0x9E3779B97F4A7C15
	for k := h >> 40 & mask; ; k = (k + 1) & mask {
		at := r.slots[k]
		if at == 0 {
			r.nodes = append(r.nodes, node{i: int32(i), j: int32(j), pat: pat, read: read, r: bits, from: int32(i), with: int32(j)})
			r.slots[k] = int32(len(r.nodes))
			return int32(len(r.nodes) - 1), false
		}
		if n := &r.nodes[at-1]; int(n.i) == i && int(n.j) == j && n.pat == pat && n.read == read && n.r == bits {
			return at - 1, true
		}
	}
}

func (r *reader) grow() {
	r.slots = make([]int32, max(256, 2*len(r.slots)))
	mask := uint64(len(r.slots) - 1)
	for at, n := range r.nodes {
		h := (uint64(n.i)<<32 ^ uint64(n.j)<<16 ^ uint64(n.pat)<<6 ^ uint64(n.read)<<3 ^ uint64(n.r)) * 0x9E3779B97F4A7C15
		k := h >> 40 & mask
		for r.slots[k] != 0 {
			k = (k + 1) & mask
		}
		r.slots[k] = int32(at + 1)
	}
}

// explore reads all that hangs together with one node, both ways, and notes the
// finds in it. Each node is read once, however often something points at it.
func (r *reader) explore(pat uint16, read reading, bits uint8, i, j int) {
	if i < 0 || i > len(r.p) {
		return
	}
	r.first = min(r.first, r.place)
	if read == asText && r.plainRun(pat, i, j) {
		return
	}
	first, known := r.node(pat, read, bits, i, j)
	if known {
		return
	}
	r.edges = r.edges[:0]
	for k := first; int(k) < len(r.nodes); k++ {
		switch n := r.nodes[k]; n.read {
		case asText:
			r.textOn(k, n)
			r.textBack(n)
		case asHex:
			r.hexOn(k, n)
			r.hexBack(n)
		case asBase64:
			r.base64On(k, n)
			r.base64Back(n)
		default:
			r.utf16On(k, n)
			r.utf16Back(n)
		}
	}
	if len(r.edges) > 0 {
		r.judge(first)
	}
}

// plainRun reads a run of text where no escape is near, and tells whether that
// was so: then nothing else hangs together with it.
func (r *reader) plainRun(pat uint16, i, j int) bool {
	s := &r.set.secrets[pat]
	start, end := i, i
	for from := j; from > 0 && start > 0 && r.p[start-1] == s.value[from-1]; from-- {
		start--
	}
	for to := j; to < len(s.value) && end < len(r.p) && r.p[end] == s.value[to]; to++ {
		end++
	}
	if r.set.spaced || !r.apart(start, end) {
		return false
	}
	if end-start >= s.min {
		r.found(start, end, pat, asText)
	}
	return true
}

// apart tells whether no escape ends in or at the run between start and end, and
// none begins in or behind it.
func (r *reader) apart(start, end int) bool {
	low := max(0, start-maxEscape)
	for at := end + 1; ; {
		if at = r.leadBefore(min(at, len(r.p)), low+2*maxEscape); at < 0 {
			return true
		}
		switch c := r.p[at]; {
		case c == '\r' || c == '\n' || !r.counts(c, at):
		case c == '&':
			return false
		default:
			if _, n := single(r.p, at); n == 0 || at+n >= start {
				return false
			}
		}
	}
}

// lead adds an edge from node k to the node at i, behind a spelling that ends at
// end.
func (r *reader) lead(k int32, bits uint8, i, j, end int) {
	n := r.nodes[k]
	to, _ := r.node(n.pat, n.read, bits, i, j)
	r.edges = append(r.edges, edge{from: k, to: to, at: n.i, end: int32(end)})
}

// judge notes the finds among the nodes from first on. As an edge leads on in
// the text, one pass in its order gives each node its best beginning.
func (r *reader) judge(first int32) {
	slices.SortFunc(r.edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from, b.from), cmp.Compare(a.end, b.end))
	})
	p := &r.set.secrets[r.nodes[first].pat]
	plain := true
	for k := range r.edges {
		e := &r.edges[k]
		from, to := &r.nodes[e.from], &r.nodes[e.to]
		switch {
		case from.from <= to.from && from.with <= to.with:
			to.from, to.with = from.from, from.with
		case from.from < to.from || from.with < to.with:
			plain = false
		}
		if int(e.end-from.from) > p.limit {
			plain = false
		}
	}
	if !plain {
		r.judgeAll(first)
		return
	}
	for k := range r.edges {
		e := &r.edges[k]
		from := &r.nodes[e.from]
		if int(r.nodes[e.to].j-from.with) >= p.min {
			r.found(int(from.from), int(e.end), from.pat, from.read)
		}
	}
}

// judgeAll is judge for what it cannot tell: spellings longer than a find may
// be, and such that can be read in two ways of which neither is the better. It
// looks at each beginning by itself.
func (r *reader) judgeAll(first int32) {
	p := &r.set.secrets[r.nodes[first].pat]
	for k := 0; k < len(r.edges); k++ {
		begin := r.edges[k].from
		if k > 0 && r.edges[k-1].from == begin {
			continue
		}
		b := r.nodes[begin]
		r.marks = append(r.marks[:0], make([]bool, len(r.nodes)-int(first))...)
		r.marks[begin-first] = true
		for _, e := range r.edges[k:] {
			if int(e.at-b.i) > p.limit {
				break
			}
			if !r.marks[e.from-first] {
				continue
			}
			r.marks[e.to-first] = true
			if int(r.nodes[e.to].j-b.j) >= p.min && int(e.end-b.i) <= p.limit {
				r.found(int(b.i), int(e.end), b.pat, b.read)
			}
		}
	}
}

func (r *reader) found(start, end int, pat uint16, read reading) {
	if n := len(r.finds); n > 0 {
		if f := &r.finds[n-1]; f.start == start && f.pat == pat && f.read == read {
			f.end = max(f.end, end)
			return
		}
	}
	r.finds = append(r.finds, find{start, end, pat, read})
}

// settle brings the finds into order and makes those that overlap one, with the
// replacement of the one that begins first, then the longest, then the first in
// the policy.
func (r *reader) settle() []find {
	for k := range r.finds {
		r.widen(&r.finds[k])
	}
	slices.SortFunc(r.finds, func(a, b find) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.pat, b.pat), cmp.Compare(a.read, b.read))
	})
	r.dropTwins()
	out := r.finds[:0]
	for _, f := range r.finds {
		if n := len(out); n > 0 && f.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, f.end)
			continue
		}
		out = append(out, f)
	}
	return out
}

// dropTwins takes out the second reading of UTF-16: ASCII in one order can be
// read in the other as well, a byte apart, and only the reading whose units
// begin at an even place counts.
func (r *reader) dropTwins() {
	odd := func(f find) bool { return f.read.utf16() && f.start&1 == 1 }
	if !slices.ContainsFunc(r.finds, odd) {
		return
	}
	all := r.finds
	r.odds = r.odds[:0]
	for k, f := range all {
		if !odd(f) {
			continue
		}
		twin := func(g find) bool {
			return g.read.utf16() && g.read != f.read && g.start&1 == 0 && f.start >= g.start-1 && f.end <= g.end+1
		}
		near := false
		for m := k + 1; m < len(all) && all[m].start <= f.start+1 && !near; m++ {
			near = twin(all[m])
		}
		for m := k - 1; m >= 0 && all[m].start >= f.start-r.set.hold && !near; m-- {
			near = twin(all[m])
		}
		if near {
			r.odds = append(r.odds, int32(k))
		}
	}
	kept := r.finds[:0]
	for k, f := range r.finds {
		if len(r.odds) > 0 && int(r.odds[0]) == k {
			r.odds = r.odds[1:]
			continue
		}
		kept = append(kept, f)
	}
	r.finds = kept
}

// widen takes in what would no longer be JSON without the run: the escape that
// a run begins in the middle of, and the quote whose backslash was part of it.
func (r *reader) widen(f *find) {
	if f.read.utf16() {
		return
	}
	limit := r.set.secrets[f.pat].limit
	for n := 1; n <= 5 && n <= f.start && f.end-f.start+n <= limit; n++ {
		at := f.start - n
		if r.p[at] == '\\' {
			if (n == 1 || r.p[at+1] == 'u') && r.escaped(at+1) {
				f.start = at
			}
			break
		}
		if hexValue[r.p[at]] == 0xFF && r.p[at] != 'u' {
			break
		}
	}
	if f.end < len(r.p) && r.p[f.end] == '"' && r.p[f.end-1] == '\\' && f.end-f.start < limit && r.escaped(f.end) {
		f.end++
	}
}

// escaped tells whether an odd number of backslashes ends before i.
func (r *reader) escaped(i int) bool { return oddBefore(r.p, i, r.odd) }

// oddBefore tells whether an odd number of backslashes ends before i; odd says
// it of what stands before p.
func oddBefore(p []byte, i int, odd bool) bool {
	n := 0
	for n < i && p[i-1-n] == '\\' {
		n++
	}
	return (n&1 == 1) != (n == i && odd)
}

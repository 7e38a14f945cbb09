package shell

// Output keeps the first MaxOutput bytes of what is written to it, and takes
// the rest. Executors collect a stream of a command in one.
type Output struct {
	kept []byte
	cut  bool
}

// Write never fails.
func (o *Output) Write(p []byte) (int, error) {
	n := min(len(p), MaxOutput-len(o.kept))
	o.kept = append(o.kept, p[:n]...)
	o.cut = o.cut || n < len(p)
	return len(p), nil
}

// Text is what was kept, not cut within a character of UTF-8, and whether there
// was more.
func (o *Output) Text() ([]byte, bool) {
	if o.cut {
		return Whole(o.kept), true
	}
	return o.kept, false
}

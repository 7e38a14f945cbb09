//go:build linux

package netns

import (
	"errors"
	"fmt"

	"github.com/egressd/egressd/netns/mount"
)

// Texts of files travel apart from the plan, and later: the helper makes its
// namespaces and listeners while egressd still reads and parses what is to be
// written.

// textEntries are the files of a plan that have a text.
func textEntries(p *mount.Plan) []*mount.Entry {
	var list []*mount.Entry
	for _, part := range [][]mount.Entry{p.Etc, p.Files} {
		for i := range part {
			list = append(list, &part[i])
		}
	}
	return list
}

// fillTexts asks for the texts that Config left open.
func (s *Session) fillTexts() error {
	if s.cfg.Texts == nil {
		return nil
	}
	texts, err := s.cfg.Texts()
	if err != nil {
		return fmt.Errorf("making the files of the sandbox: %w", err)
	}
	for _, e := range textEntries(&s.plan) {
		if text, ok := texts[e.Path]; ok {
			e.Data = text
		}
	}
	return nil
}

// A span is where a text lies among those of a parcel. Files with one text,
// such as a trust bundle at each of its places, share it.
type span struct{ At, Size int }

// sendTexts gives the helper the texts of all files, which fillTexts has filled
// in.
func (s *Session) sendTexts(c *control) error {
	spans := []span{}
	var texts [][]byte
	known := map[*byte]span{}
	at := 0
	for _, e := range textEntries(&s.plan) {
		if len(e.Data) == 0 {
			spans = append(spans, span{})
			continue
		}
		v := known[&e.Data[0]]
		if v.Size != len(e.Data) {
			v = span{at, len(e.Data)}
			known[&e.Data[0]], texts, at = v, append(texts, e.Data), at+v.Size
		}
		spans = append(spans, v)
	}
	f, err := parcel("texts", spans, texts...)
	if err != nil {
		return err
	}
	return errors.Join(c.send(message{Kind: kindTexts}, f), f.Close())
}

// hearTexts is the helper's side. The texts are there until forget is called.
func hearTexts(c *control, p *mount.Plan) (forget func() error, err error) {
	m, files, err := c.receive()
	if err != nil {
		return nil, err
	}
	defer closeFiles(files)
	if m.Kind != kindTexts || len(files) != 1 {
		return nil, errors.New("reading texts: something else came")
	}
	var spans []span
	text, forget, err := unparcelMapped(files[0], &spans)
	if err != nil {
		return nil, err
	}
	list := textEntries(p)
	if len(list) != len(spans) {
		return nil, errors.New("reading texts: there is not one for each file")
	}
	for i, e := range list {
		v := spans[i]
		if v.At < 0 || v.Size < 0 || v.At > len(text) || v.Size > len(text)-v.At {
			return nil, errors.New("reading texts: one is cut short")
		}
		e.Data = text[v.At : v.At+v.Size]
	}
	return forget, nil
}

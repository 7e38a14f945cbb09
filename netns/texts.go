package netns

import (
	"errors"
	"fmt"
	"os"

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

// sendTexts gives the helper the texts of all files, which fillTexts has filled
// in.
func (s *Session) sendTexts(c *control) error {
	var sizes []int
	var texts [][]byte
	for _, e := range textEntries(&s.plan) {
		sizes, texts = append(sizes, len(e.Data)), append(texts, e.Data)
	}
	f, err := parcel("texts", sizes, texts...)
	if err != nil {
		return err
	}
	return errors.Join(c.send(message{Kind: kindTexts}, f), f.Close())
}

// hearTexts is the helper's side.
func hearTexts(c *control, p *mount.Plan) error {
	m, files, err := c.receive()
	if err != nil {
		return err
	}
	defer closeFiles(files)
	if m.Kind != kindTexts || len(files) != 1 {
		return errors.New("reading texts: something else came")
	}
	return readTexts(files[0], p)
}

func readTexts(f *os.File, p *mount.Plan) error {
	var sizes []int
	text, err := unparcel(f, &sizes)
	if err != nil {
		return err
	}
	list := textEntries(p)
	if len(list) != len(sizes) {
		return errors.New("reading texts: there is not one for each file")
	}
	for i, e := range list {
		if sizes[i] < 0 || sizes[i] > len(text) {
			return errors.New("reading texts: one is cut short")
		}
		e.Data, text = text[:sizes[i]], text[sizes[i]:]
	}
	return nil
}

package audit

import (
	"strconv"
	"strings"
	"time"
)

const consoleTime = "2006-01-02T15:04:05.000Z"

// The colours of a verdict (ECMA-48 section 8.3.117).
const (
	green = "\x1b[32m"
	red   = "\x1b[31m"
	amber = "\x1b[33m"
	plain = "\x1b[0m"
)

// AppendConsole writes r as one line for a person, without a line feed and
// without anything in it that a terminal would obey, but for the colour of the
// verdict if that is asked for.
func AppendConsole(dst []byte, r *Record, colour bool) []byte {
	c := console{dst}
	c.buf = r.Time.UTC().AppendFormat(c.buf, consoleTime)
	c.verdict(r, colour)
	if r.Kind.wide() {
		c.request(r)
	} else {
		c.other(r)
	}
	return c.buf
}

type console struct{ buf []byte }

// word writes a text that is not empty.
func (c *console) word(s string) {
	if s != "" {
		c.buf = append(c.buf, ' ')
		c.buf = appendEscaped(c.buf, s, false)
	}
}

// named writes name and text, if the text is not empty.
func (c *console) named(name, s string) {
	if s != "" {
		c.word(name + "=" + s)
	}
}

func (c *console) verdict(r *Record, colour bool) {
	paint := ""
	switch r.Verdict {
	case "allow":
		paint = green
	case "deny":
		paint = red
	case "error":
		paint = amber
	}
	if !colour || paint == "" {
		c.word(r.Verdict)
		return
	}
	c.buf = append(append(c.buf, ' '), paint...)
	c.buf = appendEscaped(c.buf, r.Verdict, false)
	c.buf = append(c.buf, plain...)
}

func (c *console) request(r *Record) {
	if r.Kind == KindRequestOpen {
		c.word("open")
	}
	if r.Reason != "rule" {
		c.word(r.Reason)
	}
	c.word(r.Method)
	c.word(target(r))
	if r.Status != 0 {
		c.word(strconv.Itoa(r.Status))
	}
	if r.Kind == KindRequest {
		c.word(r.Duration.Round(time.Microsecond * 100).String())
		if r.BytesOut != 0 || r.BytesIn != 0 {
			c.word("out=" + strconv.FormatInt(r.BytesOut, 10) + " in=" + strconv.FormatInt(r.BytesIn, 10))
		}
	}
	if r.Verdict != "allow" || r.Credential != "" {
		c.named("request", r.RequestID) // as the client was told, and as other records say
	}
	c.named("credential", r.Credential)
	c.named("rule", r.Rule)
	c.named("hint", r.Hint)
}

// target writes what was asked for the way it was asked.
func target(r *Record) string {
	var b strings.Builder
	if r.Method != "CONNECT" && r.Scheme != "" {
		b.WriteString(r.Scheme + "://")
	}
	if strings.Contains(r.Host, ":") && r.Host[0] != '[' {
		b.WriteString("[" + r.Host + "]")
	} else {
		b.WriteString(r.Host)
	}
	usual := r.Scheme == "https" && r.Port == 443 || r.Scheme == "http" && r.Port == 80
	if r.Port != 0 && (r.Method == "CONNECT" || !usual) {
		b.WriteString(":" + strconv.Itoa(r.Port))
	}
	b.WriteString(r.Path)
	for i, name := range r.QueryNames {
		b.WriteByte("?&"[min(i, 1)])
		b.WriteString(name + "=")
		if i < len(r.QueryValues) {
			b.WriteString(r.QueryValues[i])
		} else {
			b.WriteString("…")
		}
	}
	return b.String()
}

func (c *console) other(r *Record) {
	c.word(string(r.Kind))
	c.word(r.Reason)
	host := r.Host
	if r.Port != 0 {
		host += ":" + strconv.Itoa(r.Port)
	}
	c.word(host)
	c.word(r.Qtype)
	c.word(strings.Join(r.Argv, " "))
	c.word(r.Path)
	c.named("isolator", r.Isolator)
	if r.ExitCode != nil {
		c.named("exit", strconv.Itoa(*r.ExitCode))
	}
	c.named("credential", r.Credential)
	c.named("request", r.RequestID)
	for _, k := range sortedKeys(r.Counts) {
		for _, v := range sortedKeys(r.Counts[k]) {
			name := string(k)
			if v != "" {
				name += "/" + v
			}
			c.named(name, strconv.FormatInt(r.Counts[k][v], 10))
		}
	}
}

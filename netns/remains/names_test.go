package remains

import (
	"os"
	"strings"
	"testing"
)

// The list stands in the docs, whole.
func TestNamesAreInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "### What is left behind")
	for _, name := range append(Names(), "node_modules", "site-packages", "vendor", "venv", "target") {
		if !strings.Contains(list, "`"+name+"`") {
			t.Errorf("%s is not in docs/sandbox.md", name)
		}
	}
}

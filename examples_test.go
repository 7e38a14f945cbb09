package egressd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// shownElsewhere are constructors whose example cannot stand in their package.
var shownElsewhere = map[string]string{
	"netns.Start":       "tools.ExampleSandbox starts one: netns' own tests run where everything is read-only",
	"netns/cgroup.Find": "what it finds is the host's",
}

// Every exported function that makes a value of its package's own type has an
// example, which go test runs.
func TestConstructorsHaveExamples(t *testing.T) {
	n := 0
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != "." && (name[0] == '.' || name == "cmd" || name == "internal" || name == "testdata") {
			return fs.SkipDir
		}
		makers, examples, err := makersIn(dir)
		for _, name := range makers {
			id := filepath.ToSlash(dir) + "." + name
			if n++; !examples["Example"+name] && shownElsewhere[id] == "" {
				t.Errorf("%s has no example", id)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 30 {
		t.Errorf("only %d constructors were found", n)
	}
}

// makersIn lists the constructors of the package in a folder, and its examples.
func makersIn(dir string) (makers []string, examples map[string]bool, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	types := map[string]bool{}
	examples = map[string]bool{}
	var funcs []*ast.FuncDecl
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		test := strings.HasSuffix(file, "_test.go")
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && !test && s.Name.IsExported() {
						types[s.Name.Name] = true
					}
				}
			case *ast.FuncDecl:
				if test {
					examples[d.Name.Name] = true
				} else if d.Recv == nil && d.Name.IsExported() && d.Type.Results != nil {
					funcs = append(funcs, d)
				}
			}
		}
	}
	for _, f := range funcs {
		made := f.Type.Results.List[0].Type
		if p, ok := made.(*ast.StarExpr); ok {
			made = p.X
		}
		if id, ok := made.(*ast.Ident); ok && types[id.Name] {
			makers = append(makers, f.Name.Name)
		}
	}
	return makers, examples, nil
}

package egressd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// shownElsewhere are constructors without an example of their own, and why.
var shownElsewhere = map[string]string{
	"netns.Start":        "tools.ExampleSandbox starts one: netns' own tests run where everything is read-only",
	"netns/cgroup.Find":  "what it finds is the host's",
	"policy.Environment": "part of what Load makes",
	"safepath.Entry":     "Walk hands it over",
}

// Every exported function that makes a value of its package's own type has an
// example, which go test runs. A struct that callers fill in themselves, and
// that does something then, is made by an example of some package.
func TestConstructorsHaveExamples(t *testing.T) {
	made, filled := map[string]bool{}, []string{}
	n := 0
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != "." && (name[0] == '.' || name == "cmd" || name == "internal" || name == "testdata") {
			return fs.SkipDir
		}
		dir = filepath.ToSlash(dir)
		s, err := shownIn(dir)
		for _, name := range s.makers {
			id := dir + "." + name
			if n++; !s.examples["Example"+name] && shownElsewhere[id] == "" {
				t.Errorf("%s has no example", id)
			}
		}
		for name := range s.works {
			filled = append(filled, dir+"."+name)
		}
		for id := range s.literals {
			made[id] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range filled {
		if n++; !made[id] && shownElsewhere[id] == "" {
			t.Errorf("no example makes a %s", id)
		}
	}
	if n < 45 {
		t.Errorf("only %d constructors were found", n)
	}
}

// shown is what one package has, and what its examples show.
type shown struct {
	makers   []string        // functions that make a value of a type of the package
	works    map[string]bool // structs to fill in that have methods and that nothing gives
	returned map[string]bool // types that some function or method gives
	examples map[string]bool // by the names of their functions
	literals map[string]bool // structs of ours that examples fill in
}

func shownIn(dir string) (s shown, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return s, err
	}
	s = shown{works: map[string]bool{}, returned: map[string]bool{}, examples: map[string]bool{}, literals: map[string]bool{}}
	types, structs, faults := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var funcs []*ast.FuncDecl
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return s, err
		}
		test := strings.HasSuffix(file, "_test.go")
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok && !test && spec.Name.IsExported() {
						types[spec.Name.Name], structs[spec.Name.Name] = true, fillable(spec.Type)
					}
				}
			case *ast.FuncDecl:
				switch {
				case test && strings.HasPrefix(d.Name.Name, "Example"):
					s.examples[d.Name.Name] = true
					literalsIn(d, f.Imports, s.literals)
				case !test && d.Name.IsExported():
					funcs = append(funcs, d)
				}
			}
		}
	}
	for _, f := range funcs {
		if f.Recv != nil {
			switch name := named(f.Recv.List[0].Type); f.Name.Name {
			case "Error":
				faults[name] = true
			case "String":
			default:
				s.works[name] = structs[name]
			}
		}
		if f.Type.Results == nil {
			continue
		}
		if first := named(f.Type.Results.List[0].Type); f.Recv == nil && types[first] {
			s.makers = append(s.makers, f.Name.Name)
		}
		ast.Inspect(f.Type.Results, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				s.returned[id.Name] = true
			}
			return true
		})
	}
	maps.DeleteFunc(s.works, func(name string, fills bool) bool { return !fills || faults[name] || s.returned[name] })
	return s, nil
}

// named is the name of a type of the same package, or of what it points to.
func named(t ast.Expr) string {
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	id, _ := t.(*ast.Ident)
	if id == nil {
		return ""
	}
	return id.Name
}

// fillable says whether a type is a struct with exported fields.
func fillable(t ast.Expr) bool {
	s, ok := t.(*ast.StructType)
	if !ok {
		return false
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			if name.IsExported() {
				return true
			}
		}
	}
	return false
}

// literalsIn adds the structs of ours that a function fills in, as folder.Name.
func literalsIn(f *ast.FuncDecl, imports []*ast.ImportSpec, into map[string]bool) {
	dirs := map[string]string{}
	for _, spec := range imports {
		if dir, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); ours {
			dirs[path.Base(dir)] = dir
			if spec.Name != nil {
				dirs[spec.Name.Name] = dir
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if sel, ok := lit.Type.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && dirs[pkg.Name] != "" {
					into[dirs[pkg.Name]+"."+sel.Sel.Name] = true
				}
			}
		}
		return true
	})
}

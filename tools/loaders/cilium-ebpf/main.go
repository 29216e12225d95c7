// Prints what cilium/ebpf parses of objects, one line of JSON for each: programs with type, attach
// type and instructions, maps with their definitions. Nothing is loaded.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

type program struct {
	Name    string `json:"name"`
	Section string `json:"section"`
	Type    uint32 `json:"type"`
	Attach  uint32 `json:"attach"`
	Flags   uint32 `json:"flags"`
	Target  string `json:"target"`
	License string `json:"license"`
	// Nothing if they cannot be loaded on Linux.
	Insns *string          `json:"insns"`
	Maps  [][2]interface{} `json:"maps"`
	// Slots whose value is set when a kernel is known.
	Open []uint64 `json:"open"`
}

type mapSpec struct {
	Name       string           `json:"name"`
	Type       uint32           `json:"type"`
	KeySize    uint32           `json:"key_size"`
	ValueSize  uint32           `json:"value_size"`
	MaxEntries uint32           `json:"max_entries"`
	Flags      uint32           `json:"flags"`
	Pinning    uint32           `json:"pinning"`
	Inner      *mapSpec         `json:"inner"`
	Entries    [][2]interface{} `json:"entries"`
	Data       *string          `json:"data"`
}

type object struct {
	File     string    `json:"file"`
	Error    string    `json:"error,omitempty"`
	Programs []program `json:"programs"`
	Maps     []mapSpec `json:"maps"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, file := range os.Args[1:] {
		if err := out.Encode(read(file)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
}

func read(file string) object {
	found := object{File: file}
	spec, err := ebpf.LoadCollectionSpec(file)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	for _, it := range spec.Programs {
		found.Programs = append(found.Programs, describeProgram(it))
	}
	for name, it := range spec.Maps {
		// Creation refuses bytes after the definition that are not zero.
		if it.Extra != nil {
			rest, _ := io.ReadAll(it.Extra)
			if len(bytes.Trim(rest, "\x00")) != 0 {
				return object{File: file, Error: fmt.Sprintf("map %s: members after its definition", name)}
			}
		}
		found.Maps = append(found.Maps, describeMap(name, it))
	}
	sort.Slice(found.Programs, func(a, b int) bool { return found.Programs[a].Name < found.Programs[b].Name })
	sort.Slice(found.Maps, func(a, b int) bool { return found.Maps[a].Name < found.Maps[b].Name })
	return found
}

// Instructions as they are loaded, with 0 for maps.
func describeProgram(it *ebpf.ProgramSpec) program {
	made := program{
		Name: it.Name, Section: it.SectionName, Type: uint32(it.Type), Attach: uint32(it.AttachType),
		Flags: it.Flags, Target: it.AttachTo, License: it.License,
	}
	insns := append(asm.Instructions(nil), it.Instructions...)
	open := map[uint64]bool{}
	iter := insns.Iterate()
	for iter.Next() {
		ins, slot := iter.Ins, uint64(iter.Offset)
		if ins.IsLoadFromMap() && ins.Reference() != "" {
			made.Maps = append(made.Maps, [2]interface{}{slot, ins.Reference()})
			value := ins.Constant
			if ins.Src == asm.PseudoMapFD {
				value = 0
			}
			symbol := ins.Symbol()
			*ins = asm.Instruction{OpCode: ins.OpCode, Dst: ins.Dst, Src: ins.Src, Constant: value}
			*ins = ins.WithSymbol(symbol)
		}
		if ins.IsKfuncCall() {
			open[slot] = true
			ins.Constant = 0
		}
	}
	var buf bytes.Buffer
	if err := insns.Marshal(&buf, binary.LittleEndian); err == nil {
		text := hex.EncodeToString(buf.Bytes())
		made.Insns = &text
	}
	for slot := range open {
		made.Open = append(made.Open, slot)
	}
	return made
}

func describeMap(name string, it *ebpf.MapSpec) mapSpec {
	made := mapSpec{
		Name: name, Type: uint32(it.Type), KeySize: it.KeySize, ValueSize: it.ValueSize,
		MaxEntries: it.MaxEntries, Flags: it.Flags, Pinning: uint32(it.Pinning),
	}
	if it.InnerMap != nil {
		inner := describeMap(it.InnerMap.Name, it.InnerMap)
		made.Inner = &inner
	}
	for _, entry := range it.Contents {
		switch value := entry.Value.(type) {
		case string:
			made.Entries = append(made.Entries, [2]interface{}{entry.Key, value})
		case []byte:
			data := hex.EncodeToString(value)
			made.Data = &data
		}
	}
	return made
}

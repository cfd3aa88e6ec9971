package lua

import (
	"fmt"
	"math"
)

// jsonSettings are what scripts can set about cjson. Those of the global table last until Reset: in Redis
// they outlive the script, but States are exchangeable here.
type jsonSettings struct {
	sparseConvert int // 1: arrays that are too sparse become objects; 0: they are an error
	sparseRatio   int // an array is too sparse if its last index is above this times its elements; 0: never
	sparseSafe    int // and above this
	encodeDepth   int
	decodeDepth   int
	precision     int // digits of numbers
	keepBuffer    int // there is no buffer to keep; scripts may still set and read it
	encodeInvalid int // what NaN and the infinities become: jsonRefuse, jsonWrite or jsonNull
	decodeInvalid int // 1: NaN, infinities and hexadecimal numbers are read; 0: they are an error
}

// The values of encodeInvalid.
const (
	jsonRefuse = iota
	jsonWrite
	jsonNull
)

var jsonDefaults = jsonSettings{
	sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, precision: 14,
	keepBuffer: 1, decodeInvalid: 1,
}

// jsonNullValue stands for null, which a table could not hold: a light userdata that is a null pointer.
var jsonNullValue = Light(0)

// OpenCJSON adds the library cjson, as version 2.1.0 in Redis has it.
func OpenCJSON(s *State) {
	settings := new(jsonSettings)
	fillCJSON(s, s.Library("cjson"), settings)
	s.AtReset(func() { *settings = jsonDefaults })
}

// fillCJSON sets the functions of cjson, which share settings, in t.
func fillCJSON(s *State, t *Table, settings *jsonSettings) {
	*settings = jsonDefaults
	s.Register(t, map[string]HostFunction{
		"encode": func(c *Call) { jsonEncode(c, settings) },
		"decode": func(c *Call) { jsonDecode(c, settings) },
		"new":    jsonNew,
		"encode_sparse_array": func(c *Call) {
			c.checkLen(3)
			c.optionSetting(1, &settings.sparseConvert, "off", "on")
			c.intSetting(2, &settings.sparseRatio, 0, math.MaxInt32)
			c.intSetting(3, &settings.sparseSafe, 0, math.MaxInt32)
		},
		"encode_max_depth":        intSetting(&settings.encodeDepth, 1, math.MaxInt32),
		"decode_max_depth":        intSetting(&settings.decodeDepth, 1, math.MaxInt32),
		"encode_number_precision": intSetting(&settings.precision, 1, 14),
		"encode_keep_buffer":      optionSetting(&settings.keepBuffer, "off", "on"),
		"encode_invalid_numbers":  optionSetting(&settings.encodeInvalid, "off", "on", "null"),
		"decode_invalid_numbers":  optionSetting(&settings.decodeInvalid, "off", "on"),
	})
	t.SetString("null", jsonNullValue)
	t.SetString("_NAME", String("cjson"))
	t.SetString("_VERSION", String("2.1.0"))
}

// jsonNew returns a library with settings of its own.
func jsonNew(c *Call) {
	c.Spend(3000)
	s := c.State()
	c.Charge(256) // the settings, and what the functions capture
	t := s.NewTable(0, 0)
	fillCJSON(s, t, new(jsonSettings))
	c.Push(TableValue(t))
}

func (c *Call) checkLen(most int) {
	if c.Len() > most {
		c.ArgError(most+1, "found too many arguments")
	}
}

func intSetting(setting *int, least, most int) HostFunction {
	return func(c *Call) {
		c.checkLen(1)
		c.intSetting(1, setting, least, most)
	}
}

// intSetting changes a setting to argument i if there is one, and pushes the setting.
func (c *Call) intSetting(i int, setting *int, least, most int) {
	if !c.Arg(i).isNil() {
		n := int(int32(c.CheckInt(i)))
		if n < least || n > most {
			// cjson blames argument 1, whichever it is.
			c.ArgError(1, fmt.Sprintf("expected integer between %d and %d", least, most))
		}
		*setting = n
	}
	c.PushNumber(float64(*setting))
}

func optionSetting(setting *int, names ...string) HostFunction {
	return func(c *Call) {
		c.checkLen(1)
		c.optionSetting(1, setting, names...)
	}
}

// optionSetting changes a setting to the place among names of argument i, if there is one; the first two
// names may also be false and true. It pushes the setting.
func (c *Call) optionSetting(i int, setting *int, names ...string) {
	switch v := c.Arg(i); {
	case v.isNil():
	case v.Kind() == KindBool:
		*setting = bit(v.truthy())
	default:
		*setting = c.checkOption(i, names)
	}
	if *setting < 2 {
		c.Push(Bool(*setting == 1))
		return
	}
	c.PushString(names[*setting])
}

// checkOption is the place of argument i among names.
func (c *Call) checkOption(i int, names []string) int {
	text := c.CheckString(i)
	for at, name := range names {
		if text == name {
			return at
		}
	}
	c.Charge(len(text))
	c.ArgError(i, fmt.Sprintf("invalid option '%s'", text))
	return 0
}

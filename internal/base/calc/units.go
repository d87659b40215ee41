package calc

import (
	"math/big"
	"strings"
	"sync"
)

// dimension is what a unit measures.
type dimension string

const (
	length      dimension = "length"
	mass        dimension = "mass"
	temperature dimension = "temperature"
	data        dimension = "data"
	time        dimension = "time"
)

// unit is a unit: what one of it is in the base of its kind.
type unit struct {
	name   string // as it is shown
	kind   dimension
	factor *big.Rat
	offset *big.Rat // of temperatures: what zero is in the base; nil = zero
	tight  bool     // no space before it
}

// table is every unit: its kind, what one of it is in the base (a fraction; two with a
// space between them are factor and offset), and its names, the one that is shown first.
// The bases are metre, kilogram, kelvin, bit and second. Those of yard and pound are the
// international ones of 1959, month and year the averages of the Gregorian calendar.
const table = `
length 1 m metre metres meter meters 미터
length 1/1000000000 nm nanometre nanometres nanometer nanometers 나노미터
length 1/1000000 µm um μm micrometre micrometres micrometer micrometers 마이크로미터
length 1/1000 mm millimetre millimetres millimeter millimeters 밀리미터
length 1/100 cm centimetre centimetres centimeter centimeters 센티미터 센티
length 1000 km kilometre kilometres kilometer kilometers 킬로미터
length 127/5000 in inch inches " 인치
length 381/1250 ft foot feet ' 피트
length 1143/1250 yd yard yards 야드
length 201168/125 mi mile miles 마일
length 1852 nmi 해리
mass 1 kg kilogram kilograms 킬로그램 킬로
mass 1/1000000 mg milligram milligrams 밀리그램
mass 1/1000 g gram grams 그램
mass 1000 t tonne tonnes 톤
mass 45359237/100000000 lb lbs pound pounds 파운드
mass 45359237/1600000000 oz ounce ounces 온스
mass 317514659/50000000 st stone stones
mass 3/5 근
mass 3/800 돈
temperature 1 K kelvin 켈빈
temperature 1,5463/20 °C C celsius centigrade 섭씨
temperature 5/9,45967/180 °F F fahrenheit 화씨
data 1 bit bits 비트
data 8 B byte bytes 바이트
data 1000 kbit kb kilobit kilobits
data 1000000 Mbit Mb megabit megabits
data 1000000000 Gbit Gb gigabit gigabits
data 1000000000000 Tbit Tb terabit terabits
data 8000 kB KB kilobyte kilobytes 킬로바이트
data 8000000 MB megabyte megabytes 메가바이트 메가
data 8000000000 GB gigabyte gigabytes 기가바이트 기가
data 8000000000000 TB terabyte terabytes 테라바이트 테라
data 8000000000000000 PB petabyte petabytes 페타바이트
data 8192 KiB kibibyte kibibytes
data 8388608 MiB mebibyte mebibytes
data 8589934592 GiB gibibyte gibibytes
data 8796093022208 TiB tebibyte tebibytes
data 9007199254740992 PiB pebibyte pebibytes
time 1 s sec secs second seconds 초
time 1/1000000000 ns nanosecond nanoseconds 나노초
time 1/1000000 µs us μs microsecond microseconds 마이크로초
time 1/1000 ms millisecond milliseconds 밀리초
time 60 min mins minute minutes 분
time 3600 h hr hrs hour hours 시간
time 86400 d day days 일
time 604800 wk week weeks 주
time 2629746 month months 개월 달
time 31556952 yr year years 년
`

// units are the units by their names: as they are written, and for those that no other
// unit has in small letters, in those. Bytes come before bits there.
var units = sync.OnceValue(func() map[string]*unit {
	all, small := map[string]*unit{}, map[string]*unit{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		factor, offset, _ := strings.Cut(words[1], ",")
		u := &unit{name: words[2], kind: dimension(words[0]), factor: rat(factor)}
		if offset != "" {
			u.offset = rat(offset)
		}
		u.tight = u.kind == temperature && u.offset != nil
		for _, n := range words[2:] {
			all[n] = u
			l := strings.ToLower(n)
			if other := small[l]; other == nil || strings.HasSuffix(n, "B") {
				small[l] = u
			}
		}
	}
	for n, u := range small {
		if all[n] == nil {
			all[n] = u
		}
	}
	return all
})

// rat reads a fraction of the table.
func rat(s string) *big.Rat {
	n, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("calc: the table of units has " + s)
	}
	return n
}

// find returns the unit of a name, or nil.
func find(name string) *unit {
	if u := units()[name]; u != nil {
		return u
	}
	return units()[strings.ToLower(name)]
}

// convert writes a value in another unit of its kind.
func convert(v value, to *unit, column int) (value, error) {
	if v.unit == nil || v.unit.kind != to.kind {
		return v, &Error{column, Units, names(v, value{unit: to})}
	}
	n := new(big.Rat).Mul(v.n, v.unit.factor)
	if v.unit.offset != nil {
		n.Add(n, v.unit.offset)
	}
	if to.offset != nil {
		n.Sub(n, to.offset)
	}
	return value{n: n.Quo(n, to.factor), unit: to, rounded: v.rounded}.checked(column)
}

package ring

// crcTables[k][b] is the CRC of byte b followed by k zero bytes. CRCs are linear, so crc16 handles
// eight bytes at once, as the XOR of eight independent lookups ("slicing by eight"). Byte by byte,
// each lookup would wait for the one before, and a key of 16 bytes would take 80 ns instead of 14
// (Xeon, 2 busy cores). The tables take 4 KiB of the first-level cache.
var crcTables = makeCRCTables()

// makeCRCTables builds the tables for CRC-16/XMODEM: polynomial 0x1021, initial value 0, no
// reflection, no inversion.
func makeCRCTables() (t [8][256]uint16) {
	for b := range 256 {
		crc := uint16(b) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
		t[0][b] = crc
	}
	for k := 1; k < len(t); k++ {
		for b := range 256 {
			before := t[k-1][b]
			t[k][b] = before<<8 ^ t[0][before>>8]
		}
	}
	return t
}

// crc16 returns the CRC-16/XMODEM of p.
func crc16(p []byte) uint16 {
	t := &crcTables
	var crc uint16
	for len(p) >= 8 {
		// The running CRC only meets the first two of the eight bytes.
		crc = t[7][p[0]^byte(crc>>8)] ^ t[6][p[1]^byte(crc)] ^
			t[5][p[2]] ^ t[4][p[3]] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]]
		p = p[8:]
	}
	if len(p) >= 4 {
		crc = t[3][p[0]^byte(crc>>8)] ^ t[2][p[1]^byte(crc)] ^ t[1][p[2]] ^ t[0][p[3]]
		p = p[4:]
	}
	for _, b := range p {
		crc = crc<<8 ^ t[0][byte(crc>>8)^b]
	}
	return crc
}

// Package onebyte has bytes as texts of one character each, which is how histories hold what is sent and said.
package onebyte

// Text is that of the bytes.
func Text[T string | []byte](data T) string {
	runes := make([]rune, len(data))
	for index := range len(data) {
		runes[index] = rune(data[index])
	}
	return string(runes)
}

// Bytes are those of the text.
func Bytes(text string) []byte {
	data := make([]byte, 0, len(text))
	for _, one := range text {
		data = append(data, byte(one))
	}
	return data
}

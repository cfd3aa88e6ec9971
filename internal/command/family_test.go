package command

import "testing"

func TestFamily(t *testing.T) {
	f := func(id ID, want Family) {
		t.Helper()
		if got := ByID(id).Family(); got != want {
			t.Errorf("%s is of the family %s, want %s", ByID(id).Name, got, want)
		}
	}
	f(Get, FamilyRead)
	f(Set, FamilyWrite)
	f(Incr, FamilyWrite)
	f(ObjectFreq, FamilyRead)
	f(MGet, FamilyMulti)
	f(MSet, FamilyMulti)
	f(BitOp, FamilyMulti)
	f(Scan, FamilyWide)
	f(Info, FamilyWide)
	f(Ping, FamilyOther)
}

"""Systems that others run: a catalogue of well-known ones, and the person's own."""

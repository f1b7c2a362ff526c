"""What the compiler did to a program, for people: `explain` as text, `page` as one HTML page, `profile` with times."""

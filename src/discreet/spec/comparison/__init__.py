"""Two promises side by side: does one imply the other, what separates them, what to beware of."""

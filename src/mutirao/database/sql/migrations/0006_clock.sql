-- A clock's turn answers what it did by duty. Running workers: their clocks end with an error, and they with them; start them again.

drop function if exists mutirao.turn_clock(int, text);

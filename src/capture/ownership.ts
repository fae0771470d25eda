/**
 * Whose the kernel's objects of a capture are. In an upgrade two processes know them: they are the old one's until it stops
 * reading its TUNs, and the new one's from the turn on in which that begins to serve. The process whose they are not neither
 * changes nor removes them.
 */
export class Ownership {
  isOurs = true;
}

/** Sets of whole numbers, as ranges [from, to) in ascending order. Made for growth at the upper end. */

/** One for these lists alone: they are read many times for each packet (see lib/at.ts). */
function numberAt(numbers: readonly number[], index: number): number {
  return numbers[index] as number;
}

/** Of a set that had no range yet; never changed. */
const NONE: number[] = [];

export class RangeSet {
  #from = NONE;
  #to = NONE;

  get size(): number {
    return this.#from.length;
  }

  /** Of the range at this place, 0 the lowest. */
  fromAt(place: number): number {
    return numberAt(this.#from, place);
  }

  /** Behind the last number of the range at this place. */
  toAt(place: number): number {
    return numberAt(this.#to, place);
  }

  /** The place of the first range that ends above `value`; `size` where there is none. */
  #placeOf(value: number): number {
    let low = 0;
    let high = this.#to.length;
    if (high === 0 || numberAt(this.#to, high - 1) <= value) return high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numberAt(this.#to, middle) > value) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  has(value: number): boolean {
    const place = this.#placeOf(value);
    return place < this.size && numberAt(this.#from, place) <= value;
  }

  add(from: number, to: number): void {
    if (from >= to) return;
    let first = this.#placeOf(from - 1); // a range that ends at `from` is joined
    if (first < this.size && numberAt(this.#from, first) > to) return this.#insert(first, from, to);
    if (first === this.size) return this.#insert(first, from, to);
    const start = Math.min(from, numberAt(this.#from, first));
    let end = to;
    let last = first;
    while (last < this.size && numberAt(this.#from, last) <= to)
      end = Math.max(end, numberAt(this.#to, last++));
    this.#from[first] = start;
    this.#to[first] = end;
    this.#drop(++first, last - first);
  }

  remove(from: number, to: number): void {
    if (from >= to) return;
    let place = this.#placeOf(from);
    while (place < this.size && numberAt(this.#from, place) < to) {
      const [start, end] = [numberAt(this.#from, place), numberAt(this.#to, place)];
      if (start < from && end > to) {
        this.#to[place] = from;
        return this.#insert(place + 1, to, end);
      }
      if (start < from) this.#to[place++] = from;
      else if (end > to) this.#from[place++] = to;
      else this.#drop(place, 1);
    }
  }

  #insert(place: number, from: number, to: number): void {
    if (this.#from === NONE) {
      // What `push` makes has room for many, and most sets have one range for all their life.
      this.#from = [from];
      this.#to = [to];
      return;
    }
    if (place === this.size) {
      this.#from.push(from);
      this.#to.push(to);
      return;
    }
    this.#from.splice(place, 0, from);
    this.#to.splice(place, 0, to);
  }

  #drop(place: number, count: number): void {
    if (count <= 0) return;
    this.#from.splice(place, count);
    this.#to.splice(place, count);
  }

  dropLowest(): void {
    this.#drop(0, 1);
  }

  /** With the memory of its ranges. */
  clear(): void {
    this.#from = this.#to = NONE;
  }
}

// Numbers as people read them.

const whole = new Intl.NumberFormat("en");

export const count = (number: number) => whole.format(number);

export const counted = (number: number, one: string, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)} KB`;
  return `${(size / 1024 / 1024).toFixed(1)} MB`;
}

export function dollars(price: number): string {
  if (price === 0) return "$0";
  return `$${price.toFixed(price < 0.01 ? 6 : price < 1 ? 4 : 2)}`;
}

export const percent = (share: number) => `${(share * 100).toFixed(share > 0 && share < 0.01 ? 2 : 0)}%`;

export function milliseconds(time: number): string {
  if (time < 10) return `${time.toFixed(1)} ms`;
  if (time < 1000) return `${Math.round(time)} ms`;
  return `${(time / 1000).toFixed(time < 10_000 ? 1 : 0)} s`;
}

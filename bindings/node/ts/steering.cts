import { invalid } from "./error.cjs";
import { native, type NativeSteering } from "./native.cjs";
import { NATIVE } from "./prompt.cjs";

/** Words of the user's for a turn that is under way. */
export class Steering {
  /** @internal */
  readonly [NATIVE]: NativeSteering = new native.NativeSteering();

  /** Says something; the model gets it in the next round. */
  send(message: string): void {
    if (typeof message !== "string") throw invalid("message: expected a string");
    this[NATIVE].send(message);
  }

  /** Whether something has been said that the model has not got yet. */
  get hasPending(): boolean {
    return this[NATIVE].hasPending();
  }
}

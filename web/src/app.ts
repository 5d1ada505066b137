// What every page runs. Each feature finds its own elements by a data- attribute, on every part that is swapped in.
import "./reading";
import "./api";
import "./badge";
import "./check";
import "./dialog";
import "./draft";
import "./drag";
import "./file";
import "./key";
import "./live";
import "./menu";
import "./preview";
import "./zone";

"""The one place that knows Textual's internals.

The project takes one minor version of Textual, 8.2, since each part below is private:

`output` (writes only cells that have changed, 4 to 10 times fewer bytes; no public way):
- `textual._compositor.LayoutUpdate`, `ChopsUpdate`, `CompositorUpdate`: frames before they are
  written.
- `App._display`: has the changed cells of each written.
- `App._driver`: takes notifications as escape sequences.
- `App._disable_tooltips`: spares each screen a widget.
- `Screen._compositor.render_strips`: the frame as text.

`buffered_screen` (one paint for a screen that opens, closes or gets another size):
- `Screen._post_register`: the size is taken on before the first styling.
- `Screen._refresh_layout`, `_compositor._full_map`: widgets just shown are repainted.
- `Widget._clear_arrangement_cache`: a layout that changes is taken on at once.
- `Screen._compositor_refresh`, `_repaint_required`, `_compositor.update_widgets`: no paint before
  the screen is filled.
- `Screen._on_timer_update`, `_screen_resized`: no waiting, no frame of a size before.
- `Screen._get_breakpoint_classes`: the classes of a size, before the first styling.

`driver` (ends with its terminal; takes any bytes as keys):
- `textual._xterm_parser.XTermParser`
- `LinuxDriver._file`, `_loop`, `_app`, `_get_terminal_size`.

`net` (an error costs the part of the screen that it happened in, and not the app):
- `MessagePump._dispatch_message`, `App._handle_exception`, `textual._context.active_message_pump`:
  what handlers, callbacks and layouts raise, and where.

`scrolling`:
- `Widget._scroll_update`: a list grows without a layout of the whole screen.
"""
